//! A namespace as a disk of its own.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;

use base::lock::Lock;
use block::{Broken, ChannelBox, Control, Failure, Limits, Question, Reply};
use hal::DmaSource;

use crate::controller::Controller;
use crate::error::Error;
use crate::machine::Machine;

/// What controls a namespace; its controller, in a lock that may be held for long, is shared.
pub struct Namespace<L, D, M> {
    controller: Arc<L>,
    index: usize,
    limits: Limits,
    kind: PhantomData<fn(D, M)>,
}

impl<L, D, M> Namespace<L, D, M>
where
    L: Lock<Controller<D, M>>,
    D: DmaSource,
    M: Machine,
{
    /// Starts a namespace: what controls it, and its queues.
    pub fn start(controller: &Arc<L>, index: usize) -> Result<(Self, Vec<ChannelBox>), Error> {
        let mut held = controller.lock();
        let limits = held.limits(index).ok_or(Error::NoNamespace)?;
        let channels = held.start(index)?;
        drop(held);
        let control = Self {
            controller: controller.clone(),
            index,
            limits,
            kind: PhantomData,
        };
        Ok((control, channels))
    }
}

impl<L, D, M> Control for Namespace<L, D, M>
where
    L: Lock<Controller<D, M>>,
    D: DmaSource,
    M: Machine,
{
    fn limits(&self) -> Limits {
        self.limits
    }

    fn refresh(&mut self) -> Limits {
        if let Some(limits) = self.controller.lock().refresh(self.index) {
            self.limits = limits;
        }
        self.limits
    }

    fn ask(&mut self, question: &Question, answer: &mut [u8]) -> Result<Reply, Failure> {
        self.controller.lock().ask(question, answer)
    }

    fn stop(&mut self) {
        self.controller.lock().stop(self.index);
    }

    fn start(&mut self) -> Result<Vec<ChannelBox>, Broken> {
        self.controller.lock().start(self.index).map_err(|_| Broken)
    }
}
