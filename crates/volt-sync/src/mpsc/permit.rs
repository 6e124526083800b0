//! Reserved places.
#![forbid(unsafe_code)]

use std::fmt;
use std::iter::FusedIterator;

use super::Sender;
use crate::channel::limited::Limited;

/// One reserved place of a channel; see [`Sender::reserve`]. Given back when it is dropped.
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::channel(1);
/// let permit = tx.try_reserve().unwrap();
/// assert!(tx.try_send(1).is_err(), "the place is taken");
/// permit.send(2);
/// assert_eq!(rx.try_recv(), Ok(2));
/// ```
#[must_use = "a permit that is dropped gives its place back"]
pub struct Permit<'a, T> {
    channel: &'a Limited<T>,
}

impl<'a, T> Permit<'a, T> {
    /// Takes over one reservation.
    pub(super) fn new(channel: &'a Limited<T>) -> Self {
        Self { channel }
    }

    /// Sends a message into the reserved place. Also after the channel was closed; if the receiver
    /// is gone, the message is dropped with the channel.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::mpsc::channel(1);
    /// let permit = tx.try_reserve().unwrap();
    /// rx.close();
    /// permit.send(1);
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn send(self, value: T) {
        let channel = self.channel;
        // The send uses the reservation up.
        std::mem::forget(self);
        channel.send_reserved(value);
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.channel.unreserve(1);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("channel", &self.channel).finish()
    }
}

/// Several reserved places of a channel; see [`Sender::reserve_many`]. Those that were not taken
/// are given back when it is dropped.
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::channel(3);
/// let mut permits = tx.try_reserve_many(3).unwrap();
/// permits.next().unwrap().send(1);
/// assert_eq!(permits.len(), 2);
/// drop(permits);
/// assert_eq!(tx.capacity(), 2);
/// assert_eq!(rx.try_recv(), Ok(1));
/// ```
#[must_use = "permits that are dropped give their places back"]
pub struct PermitIterator<'a, T> {
    channel: &'a Limited<T>,
    left: usize,
}

impl<'a, T> PermitIterator<'a, T> {
    /// Takes over `left` reservations.
    pub(super) fn new(channel: &'a Limited<T>, left: usize) -> Self {
        Self { channel, left }
    }
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        self.left = self.left.checked_sub(1)?;
        Some(Permit::new(self.channel))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}
impl<T> FusedIterator for PermitIterator<'_, T> {}

impl<T> Drop for PermitIterator<'_, T> {
    fn drop(&mut self) {
        self.channel.unreserve(self.left);
    }
}

impl<T> fmt::Debug for PermitIterator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitIterator")
            .field("channel", &self.channel)
            .field("left", &self.left)
            .finish()
    }
}

/// One reserved place and the sender to it; see [`Sender::reserve_owned`]. Given back when it is
/// dropped.
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::channel(1);
/// let permit = tx.try_reserve_owned().unwrap();
/// // It can go to another thread, or into a task.
/// std::thread::spawn(move || drop(permit.send(1))).join().unwrap();
/// assert_eq!((rx.blocking_recv(), rx.blocking_recv()), (Some(1), None));
/// ```
#[must_use = "a permit that is dropped gives its place back"]
pub struct OwnedPermit<T> {
    /// `None` after `send` or `release`.
    sender: Option<Sender<T>>,
}

impl<T> OwnedPermit<T> {
    /// Takes over one reservation of `sender`.
    pub(super) fn new(sender: Sender<T>) -> Self {
        Self { sender: Some(sender) }
    }

    fn take(mut self) -> Sender<T> {
        self.sender.take().expect("present until `send` or `release`")
    }

    /// Sends a message into the reserved place and returns the sender; see [`Permit::send`].
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::mpsc::channel(1);
    /// let tx = tx.try_reserve_owned().unwrap().send(1);
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(tx.capacity(), 1);
    /// ```
    pub fn send(self, value: T) -> Sender<T> {
        let sender = self.take();
        sender.shared.channel.send_reserved(value);
        sender
    }

    /// Gives the place back and returns the sender.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// let tx = tx.try_reserve_owned().unwrap().release();
    /// assert_eq!(tx.capacity(), 1);
    /// ```
    pub fn release(self) -> Sender<T> {
        let sender = self.take();
        sender.shared.channel.unreserve(1);
        sender
    }

    /// True if both permits are for one channel.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(2);
    /// let one = tx.clone().try_reserve_owned().unwrap();
    /// let two = tx.try_reserve_owned().unwrap();
    /// assert!(one.same_channel(&two));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        self.sender
            .as_ref()
            .zip(other.sender.as_ref())
            .is_some_and(|(this, other)| this.same_channel(other))
    }

    /// True if the permit is for the sender's channel.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// let permit = tx.clone().try_reserve_owned().unwrap();
    /// assert!(permit.same_channel_as_sender(&tx));
    /// ```
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.sender.as_ref().is_some_and(|this| this.same_channel(sender))
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        if let Some(sender) = &self.sender {
            sender.shared.channel.unreserve(1);
        }
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").field("sender", &self.sender).finish()
    }
}
