// What a task waits for, by the names of both runtimes; see `random_programs.rs`.

impl Me {
    #[allow(clippy::too_many_lines, reason = "an arm for each step")]
    async fn wait(&self, what: Wait) -> String {
        let world = &*self.world;
        match what {
            Wait::Sleep(rounds) => {
                sleep_until(self.later(rounds)).await;
                "slept".to_owned()
            }
            Wait::SleepOn(first, then) => {
                let mut sleep = std::pin::pin!(sleep_until(self.later(first)));
                let is_over = rt::select! {
                    biased;
                    () = sleep.as_mut() => true,
                    () = sleep_until(self.later(1)) => false,
                };
                sleep.as_mut().reset(self.later(then));
                let was_elapsed = sleep.is_elapsed();
                sleep.await;
                format!("slept on {is_over} {was_elapsed}")
            }
            Wait::Yield(times) => {
                for _ in 0..times {
                    yield_now().await;
                }
                "yielded".to_owned()
            }
            Wait::Burst(times) => {
                let (sender, mut receiver) = mpsc::channel(1);
                for number in 0..times {
                    sender.send(number).await.expect("open");
                    assert_eq!(receiver.recv().await, Some(number));
                }
                "burst".to_owned()
            }
            Wait::Lock(index) => {
                let mut guard = Arc::clone(&world.mutexes[index]).lock_owned().await;
                *guard += 1;
                let what = format!("locked {}", *guard);
                self.hold(Held::Mutex(guard));
                what
            }
            Wait::LockBriefly(index, rounds) => {
                let mut guard = world.mutexes[index].lock().await;
                *guard += 1;
                let (since, number) = (world.ms(), *guard);
                sleep_until(self.later(rounds)).await;
                assert_eq!(*guard, number, "locked by nobody else");
                format!("locked {number} at {since}")
            }
            Wait::Read(index) => {
                let guard = Arc::clone(&world.rwlocks[index]).read_owned().await;
                let what = format!("read {}", *guard);
                self.hold(Held::Read(guard));
                what
            }
            Wait::Write(index) => {
                let mut guard = Arc::clone(&world.rwlocks[index]).write_owned().await;
                *guard += 1;
                let what = format!("wrote {}", *guard);
                self.hold(Held::Write(guard));
                what
            }
            Wait::Acquire(index, permits) => {
                let permits =
                    Arc::clone(&world.semaphores[index]).acquire_many_owned(permits).await;
                permits.map_or_else(
                    |_| "closed".to_owned(),
                    |permits| {
                        let what = format!("acquired {}", permits.num_permits());
                        self.hold(Held::Permit(permits));
                        what
                    },
                )
            }
            Wait::Notified(index) => {
                world.notifies[index].notified().await;
                "notified".to_owned()
            }
            Wait::Once(index, is_error) => {
                let value = world.cells[index].get_or_try_init(|| async {
                    sleep_until(self.later(1)).await;
                    if is_error { Err(self.id) } else { Ok(self.id) }
                });
                format!("{:?}", value.await)
            }
            Wait::Send(index, value) => {
                let Some(sender) = world.sender(index) else { return "no sender".to_owned() };
                format!("sent {:?}", sender.send(value).await.map_err(|error| error.0))
            }
            Wait::Reserve(index) => {
                let Some(sender) = world.sender(index) else { return "no sender".to_owned() };
                if lock(&self.held).iter().any(|held| matches!(held, Held::Place(_))) {
                    return "it has a place".to_owned();
                }
                match sender.reserve_owned().await {
                    Ok(place) => {
                        self.hold(Held::Place(place));
                        "reserved".to_owned()
                    }
                    Err(_) => "no place".to_owned(),
                }
            }
            Wait::Closed(index) => {
                let Some(sender) = world.sender(index) else { return "no sender".to_owned() };
                sender.closed().await;
                "closed".to_owned()
            }
            Wait::Recv(index) => {
                let Some(mut receiver) = world.receivers[index].take() else {
                    return "taken".to_owned();
                };
                format!("received {:?}", receiver.recv().await)
            }
            Wait::RecvUnbounded(many) => {
                let Some(mut receiver) = world.from_unbounded.take() else {
                    return "taken".to_owned();
                };
                let mut all = Vec::new();
                let count = receiver.recv_many(&mut all, many).await;
                format!("received {count}: {all:?}")
            }
            Wait::Broadcast => {
                let Some(mut receiver) = self.broadcast.take() else { return "taken".to_owned() };
                format!("of the broadcast {:?}", receiver.recv().await.map_err(lagged))
            }
            Wait::Changed => {
                let Some(mut receiver) = self.watched.take() else { return "taken".to_owned() };
                let result = receiver.changed().await;
                format!("changed {} {}", result.is_ok(), *receiver.borrow_and_update())
            }
            Wait::AtLeast(value) => {
                let Some(mut receiver) = self.watched.take() else { return "taken".to_owned() };
                let result = receiver.wait_for(|watched| *watched >= value).await;
                format!("{:?}", result.ok().map(|watched| *watched))
            }
            Wait::Unwatched => {
                world.watched.closed().await;
                "nobody watches".to_owned()
            }
            Wait::Answer => {
                let Some(mut answer) = self.answer.take() else { return "taken".to_owned() };
                let result = (&mut *answer).await;
                drop(answer.keep());
                format!("answered {:?}", result.ok())
            }
            Wait::Join(index) => {
                let Some(child) = self.child(index) else { return "no child".to_owned() };
                let Some(mut child) = child.take() else { return "taken".to_owned() };
                let result = (&mut *child).await;
                drop(child.keep());
                joined(result)
            }
            Wait::JoinNext => {
                let Some(mut set) = self.set.take() else { return "taken".to_owned() };
                set.join_next().await.map_or_else(|| "an empty set".to_owned(), joined)
            }
            Wait::Shutdown => {
                let Some(mut set) = self.set.take() else { return "taken".to_owned() };
                set.shutdown().await;
                format!("{} left", set.len())
            }
            Wait::Tick => {
                let Some(mut ticks) = self.ticks.take() else { return "taken".to_owned() };
                format!("tick {:?}", ticks.tick().await - world.start)
            }
        }
    }
}
