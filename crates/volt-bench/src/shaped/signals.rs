//! Tokio-shaped notification and barrier, compiled for each library that has them.

use super::rt::sync;
use crate::kind::{Gate, Signal};

impl Signal for sync::Notify {
    fn create() -> Self {
        sync::Notify::new()
    }

    fn notify(&self) {
        self.notify_one();
    }

    async fn wait(&self) {
        self.notified().await;
    }
}

impl Gate for sync::Barrier {
    fn create(parties: u32) -> Self {
        sync::Barrier::new(parties as usize)
    }

    async fn pass(&self) -> bool {
        self.wait().await.is_leader()
    }
}
