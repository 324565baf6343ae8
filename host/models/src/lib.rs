//! What the tests of mechanisms in `core/` share their data by, in place of the machine's locks.
//!
//! [`Plain`] is for long random histories on one thread, [`Watched`] for `loom`, which tries the
//! orders in which threads take locks and read words. [`explore`] runs a scene in all of them.
//!
//! Only tests depend on this crate.
#![forbid(unsafe_code)]

mod heap;
mod plain;
mod random;
mod watched;

pub use heap::Heap;
pub use plain::Plain;
pub use random::{Random, for_each_seed};
pub use watched::Watched;

use std::sync::Arc;

use loom::thread::{self, JoinHandle};

/// Forced switches of the running thread that loom tries in one execution: most races need two.
const PREEMPTIONS_MAX: usize = 3;

/// Runs `scene` in all orders that matter.
pub fn explore(scene: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS_MAX);
    model.check(scene);
}

/// Starts a thread that does `part` in the scene.
pub fn start<S: 'static, T: 'static>(
    scene: &Arc<S>,
    part: impl FnOnce(&S) -> T + 'static,
) -> JoinHandle<T> {
    let scene = scene.clone();
    thread::spawn(move || part(&scene))
}
