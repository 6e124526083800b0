// What a task does at once, by the names of both runtimes; see `random_programs.rs`.

impl Me {
    #[allow(clippy::too_many_lines, reason = "an arm for each step")]
    fn act(&self, act: Act) -> String {
        let world = &*self.world;
        match act {
            Act::Release(index) => {
                let held = self.let_go(index);
                format!("released {}", held.is_some())
            }
            Act::Downgrade(index) => match self.let_go(index) {
                Some(Held::Write(guard)) => {
                    self.hold(Held::Read(guard.downgrade()));
                    "downgraded".to_owned()
                }
                Some(held) => {
                    self.hold(held);
                    "not to be downgraded".to_owned()
                }
                None => "nothing held".to_owned(),
            },
            Act::Split(index) => match self.let_go(index) {
                Some(Held::Permit(mut permits)) => {
                    let (one, left) = (permits.split(1), permits.num_permits());
                    self.hold(Held::Permit(permits));
                    format!("{} left of {}", left, one.is_some())
                }
                Some(Held::Place(place)) => {
                    drop(place.send(99));
                    "sent in its place".to_owned()
                }
                held => {
                    held.into_iter().for_each(|held| self.hold(held));
                    "not to be split".to_owned()
                }
            },
            Act::Forget(index) => match self.let_go(index) {
                Some(Held::Permit(permits)) => {
                    permits.forget();
                    "forgotten".to_owned()
                }
                held => {
                    held.into_iter().for_each(|held| self.hold(held));
                    "not to be forgotten".to_owned()
                }
            },
            Act::TryLock(index) => match Arc::clone(&world.mutexes[index]).try_lock_owned() {
                Ok(mut guard) => {
                    *guard += 1;
                    format!("locked {}", *guard)
                }
                Err(_) => "locked".to_owned(),
            },
            Act::TryRead(index) => {
                format!("{:?}", world.rwlocks[index].try_read().ok().map(|guard| *guard))
            }
            Act::TryWrite(index) => {
                format!("{:?}", world.rwlocks[index].try_write().ok().map(|guard| *guard))
            }
            Act::TryAcquire(index, permits) => {
                let result = world.semaphores[index].try_acquire_many(permits);
                let is_closed = |error| matches!(error, TryAcquireError::Closed);
                format!("{:?}", result.map(|permits| permits.num_permits()).map_err(is_closed))
            }
            Act::AddPermits(index, permits) => {
                world.semaphores[index].add_permits(permits);
                format!("{} available", world.semaphores[index].available_permits())
            }
            Act::ForgetPermits(index, permits) => {
                format!("{} forgotten", world.semaphores[index].forget_permits(permits))
            }
            Act::CloseSemaphore(index) => {
                world.semaphores[index].close();
                format!("closed {}", world.semaphores[index].is_closed())
            }
            Act::NotifyOne(index) => {
                world.notifies[index].notify_one();
                "notified one".to_owned()
            }
            Act::NotifyLast(index) => {
                world.notifies[index].notify_last();
                "notified the last".to_owned()
            }
            Act::NotifyWaiters(index) => {
                world.notifies[index].notify_waiters();
                "notified all".to_owned()
            }
            Act::TrySend(index, value) => {
                let sender = world.sender(index);
                let result = sender.map(|sender| sender.try_send(value));
                format!(
                    "{:?}",
                    result.map(|result| result.map_err(|error| match error {
                        mpsc::error::TrySendError::Full(value) => ("full", value),
                        mpsc::error::TrySendError::Closed(value) => ("closed", value),
                    }))
                )
            }
            Act::TryRecv(index) => {
                let receiver = world.receivers[index].take();
                let is_empty = |error| error == mpsc::error::TryRecvError::Empty;
                format!("{:?}", receiver.map(|mut receiver| receiver.try_recv().map_err(is_empty)))
            }
            Act::CloseReceiver(index) => {
                if let Some(mut receiver) = world.receivers[index].take() {
                    receiver.close();
                }
                "closed".to_owned()
            }
            Act::DropReceiver(index) => {
                world.receivers[index].clear();
                "dropped".to_owned()
            }
            Act::DropSender(index) => {
                let sender = lock(&world.senders[index]).take();
                let weak = sender.as_ref().map(mpsc::Sender::downgrade);
                drop(sender);
                format!("{:?}", weak.map(|weak| weak.upgrade().is_some()))
            }
            Act::LookAtChannel(index) => {
                let sender = world.sender(index);
                let sent = sender.map(|sender| (sender.capacity(), sender.is_closed()));
                let receiver = world.receivers[index].take();
                let received = receiver
                    .map(|receiver| (receiver.len(), receiver.is_empty(), receiver.is_closed()));
                format!("{sent:?} {received:?}")
            }
            Act::SendUnbounded(value) => {
                format!("{:?}", world.unbounded.send(value).map_err(|error| error.0))
            }
            Act::Publish(value) => {
                let sent = world.broadcast.send(value).map_err(|error| error.0);
                format!("{sent:?} {}", world.broadcast.len())
            }
            Act::Subscribe => {
                self.broadcast.put(world.broadcast.subscribe());
                "subscribed".to_owned()
            }
            Act::Resubscribe => {
                let receiver = self.broadcast.take();
                let (mut other, left) = match receiver.as_deref() {
                    Some(receiver) => (receiver.resubscribe(), receiver.len()),
                    None => return "no receiver".to_owned(),
                };
                drop(receiver);
                let is_empty = other.try_recv() == Err(broadcast::error::TryRecvError::Empty);
                self.broadcast.put(other);
                format!("resubscribed: {left} {is_empty}")
            }
            Act::Unsubscribe => {
                self.broadcast.clear();
                format!("{} left", world.broadcast.receiver_count())
            }
            Act::Watch => {
                self.watched.put(world.watched.subscribe());
                "watches".to_owned()
            }
            Act::Unwatch => {
                self.watched.clear();
                format!("{} watch", world.watched.receiver_count())
            }
            Act::Set(value) => format!("{:?}", world.watched.send(value).map_err(|error| error.0)),
            Act::Raise(value) => {
                let is_more = world.watched.send_if_modified(|watched| {
                    let is_more = value > *watched;
                    *watched = value.max(*watched);
                    is_more
                });
                format!("raised {is_more}")
            }
            Act::Ask => {
                let (sender, receiver) = oneshot::channel();
                lock(&world.asked).push(sender);
                self.answer.put(receiver);
                "asked".to_owned()
            }
            Act::Tell(value) => {
                let sender = lock(&world.asked).pop();
                format!("told {:?}", sender.map(|sender| (sender.is_closed(), sender.send(value))))
            }
            Act::Ignore => {
                let sender = lock(&world.asked).pop();
                format!("ignored {}", sender.is_some())
            }
            Act::Spawn(ops) => {
                let Some(child) = Self::begin(&self.world, &ops) else {
                    return "enough".to_owned();
                };
                let child =
                    if world.is_local { rt::task::spawn_local(child) } else { rt::spawn(child) };
                lock(&self.children).push(Arc::new(Place::of(child)));
                "spawned".to_owned()
            }
            Act::SpawnInSet(ops) => {
                let Some(mut set) = self.set.take() else { return "taken".to_owned() };
                let Some(child) = Self::begin(&self.world, &ops) else {
                    return "enough".to_owned();
                };
                drop(if world.is_local { set.spawn_local(child) } else { set.spawn(child) });
                format!("{} in the set", set.len())
            }
            Act::Abort(index) => {
                let child = self.child(index);
                let child = child.as_ref().and_then(|child| child.take());
                format!("{:?}", child.map(|child| child.abort()))
            }
            Act::IsFinished(index) => {
                let child = self.child(index);
                let child = child.as_ref().and_then(|child| child.take());
                format!("{:?}", child.map(|child| child.is_finished()))
            }
            Act::Detach(index) => {
                self.child(index).iter().for_each(|child| child.clear());
                "detached".to_owned()
            }
            Act::AbortAll => {
                if let Some(mut set) = self.set.take() {
                    set.abort_all();
                }
                "aborted all".to_owned()
            }
            Act::DropSet => {
                self.set.put(JoinSet::new());
                "dropped the set".to_owned()
            }
            Act::TryJoinNext => {
                let set = self.set.take();
                format!("{:?}", set.map(|mut set| set.try_join_next().map(joined)))
            }
            Act::StartTicks(period, missed) => {
                let mut ticks = interval_at(self.later(0), Duration::from_millis(period * ROUND));
                ticks.set_missed_tick_behavior(match missed {
                    Missed::Burst => MissedTickBehavior::Burst,
                    Missed::Delay => MissedTickBehavior::Delay,
                    Missed::Skip => MissedTickBehavior::Skip,
                });
                self.ticks.put(ticks);
                "ticks".to_owned()
            }
            Act::ResetTicks => {
                if let Some(mut ticks) = self.ticks.take() {
                    ticks.reset_at(self.later(1));
                }
                "reset".to_owned()
            }
            Act::Panic => unreachable!("it is done at the end"),
        }
    }
}
