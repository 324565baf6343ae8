//! CPUs that halt until they are told, and a thread that knows whether it runs.

use base::CpuId;
use dispatch::{Arrival, OffCpu, RunState, State, Wake};
use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::sync::{Condvar, Mutex};
use models::Watched;

use base::lock::Family;

use crate::world::{Named, World};

type Count = <Watched as Family>::Count;

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The condition is true.
    Seen,
    /// Nobody made it true in time.
    TimeUp,
}

/// What the CPUs of a scene share.
pub struct Scene {
    world: World<Watched>,
    task: std::sync::Arc<Named<Count>>,
    state: RunState<Count>,
    is_true: AtomicBool,
    /// Some CPU runs the thread, or its registers are not saved.
    is_held: AtomicBool,
    /// An interrupt is under way to CPU 0.
    interrupt: Mutex<bool>,
    interrupted: Condvar,
}

impl Scene {
    /// CPU 0 runs the thread.
    pub fn new() -> Self {
        let state = RunState::default();
        state.run();
        Self {
            world: World::new(2),
            task: Named::on(0, 1),
            state,
            is_true: AtomicBool::new(false),
            is_held: AtomicBool::new(true),
            interrupt: Mutex::new(false),
            interrupted: Condvar::new(),
        }
    }

    pub fn state(&self) -> State {
        self.state.get()
    }

    pub fn make_true(&self) {
        self.is_true.store(true, Relaxed);
    }

    pub fn queue_is_empty(&self) -> bool {
        self.task.place().is_none()
    }

    /// CPU `from` puts the thread on a queue.
    fn enqueue(&self, from: u32) {
        assert_eq!(
            self.state(),
            State::Ready,
            "only who is ready waits for a CPU"
        );
        let cpus = crate::world::Cpus::new(2);
        cpus.here.set(from);
        let task = self.task.clone();
        let nobody = Named::on(from, 0);
        let arrival = self.world.dispatcher.enqueue(task, &nobody, &cpus);
        if arrival == Arrival::Elsewhere(CpuId(0)) {
            self.interrupt();
        }
    }

    fn interrupt(&self) {
        *self.interrupt.lock().expect("no panic") = true;
        self.interrupted.notify_one();
    }

    /// CPU 0 halts until an interrupt comes, be it one that is under way already.
    fn halt(&self) {
        let mut is_pending = self.interrupt.lock().expect("no panic");
        while !*is_pending {
            is_pending = self.interrupted.wait(is_pending).expect("no panic");
        }
        *is_pending = false;
    }

    /// CPU `from` wakes the thread.
    pub fn wake(&self, from: u32) {
        match self.state.wake() {
            Wake::Noted => {}
            Wake::Interrupt => self.interrupt(),
            Wake::Enqueue => self.enqueue(from.min(1)),
        }
    }

    pub fn wake_without_interrupt(&self) {
        assert_ne!(self.state.wake(), Wake::Enqueue);
    }

    /// The thread's registers are saved, on CPU 0.
    fn leave(&self) -> OffCpu {
        self.is_held.store(false, Relaxed);
        let left = self.state.leave_cpu();
        if matches!(left, OffCpu::Woken | OffCpu::MadeWay) {
            self.enqueue(0);
        }
        left
    }

    pub fn make_way(&self) -> OffCpu {
        self.leave()
    }

    /// CPU `cpu` takes the thread if it waits.
    pub fn take(&self, cpu: u32) -> bool {
        let cpus = crate::world::Cpus::new(2);
        cpus.here.set(cpu);
        let Some(task) = self.world.dispatcher.next(&cpus) else {
            return false;
        };
        let was_held = self.is_held.swap(true, Relaxed);
        assert!(!was_held, "a CPU still runs it");
        self.state.run();
        task.move_to(CpuId(cpu));
        true
    }

    /// CPU `cpu` looks for the thread until it has it, halted meanwhile.
    pub fn run_until_taken(&self, cpu: u32) {
        while !self.take(cpu) {
            self.world.dispatcher.announce_idle(CpuId(cpu));
            if self.world.dispatcher.ready(CpuId(cpu)) == 0 {
                self.halt();
            }
            self.world.dispatcher.announce_busy(CpuId(cpu));
        }
    }

    pub fn resume(&self, cpu: u32) {
        self.run_until_taken(cpu);
    }

    fn is_true(&self) -> bool {
        self.is_true.load(Relaxed)
    }

    /// The thread waits for the condition, and leaves CPU `cpu` meanwhile.
    pub fn wait_switched(&self, cpu: u32) -> Ended {
        loop {
            let parks = self.state.begin_park();
            if self.is_true() {
                self.state.run();
                return Ended::Seen;
            }
            if parks {
                self.leave();
                self.run_until_taken(cpu);
            }
        }
    }

    /// The same with the look before the announcement.
    pub fn wait_switched_late(&self, cpu: u32) -> Ended {
        while !self.is_true() {
            // A wake-up up to here was for something that it has not seen.
            self.state.run();
            if self.state.begin_park() {
                self.leave();
                self.run_until_taken(cpu);
            }
        }
        Ended::Seen
    }

    /// The thread waits for the condition on CPU `cpu`, which has no other one.
    pub fn wait_in_place(&self, cpu: u32) -> Ended {
        loop {
            let parks = self.state.begin_park();
            if self.is_true() {
                self.state.run();
                return Ended::Seen;
            }
            while parks && !self.state.is_awakened() {
                self.world.dispatcher.announce_idle(CpuId(cpu));
                if !self.state.is_awakened() {
                    self.halt();
                }
                self.world.dispatcher.announce_busy(CpuId(cpu));
            }
            self.state.run();
        }
    }

    /// The same, but its time is up at once.
    pub fn wait_with_patience(&self, _cpu: u32) -> Ended {
        let _ = self.state.begin_park();
        self.state.run();
        match self.is_true() {
            true => Ended::Seen,
            false => Ended::TimeUp,
        }
    }

    /// The thread is ready, on CPU `cpu`'s queue.
    pub fn put_ready(&self, cpu: u32) {
        self.put_ready_from(cpu, cpu);
    }

    /// The same, put there by CPU `from`.
    pub fn put_ready_from(&self, from: u32, cpu: u32) {
        self.task.move_to(CpuId(cpu));
        assert_ne!(self.leave_only(), OffCpu::Over);
        self.enqueue(from);
    }

    fn leave_only(&self) -> OffCpu {
        self.is_held.store(false, Relaxed);
        self.state.leave_cpu()
    }
}
