//! A seeded clock and network over the same cores that the kernel runs.
//!
//! A run is a function of its seed: the clock jumps from event to event, and every choice
//! (which frame is lost, how long another takes, how much a program writes) comes from one
//! generator. So a failure is replayed by its seed, and a minute of network takes
//! milliseconds. Two hosts, one link, and perhaps a box in it that rewrites segments. What
//! they must never break is checked by the caller: bytes arrive once, in order and complete,
//! both sides close, no buffer is left, and flows share the link and fill it.
#![forbid(unsafe_code)]

mod crowd;
mod device;
mod flows;
pub mod frame;
mod host;
mod hostile;
mod hostile_v6;
pub mod lan;
mod link;
mod middlebox;
mod peer;
mod random;
mod transfer;
mod world;

pub use self::link::{Link, Weather};
pub use crowd::{Closer, Crowd};
pub use device::cut;
pub use flows::{Flows, Plan};
pub use host::{Host, HostEnv};
pub use hostile::besiege;
pub use hostile_v6::besiege_v6;
pub use middlebox::Middlebox;
pub use peer::{Heard, Peer};
pub use random::Random;
pub use transfer::{Outcome, Transfer};
pub use world::{Side, World};

/// Runs `check` for each of `count` seeds; `SEED` in the environment replays one instead.
pub fn for_each_seed(count: u64, mut check: impl FnMut(u64)) {
    if let Some(seed) = std::env::var("SEED")
        .ok()
        .and_then(|text| text.parse().ok())
    {
        check(seed);
        return;
    }
    for seed in 1..=count {
        let report = Report(seed);
        check(seed);
        std::mem::forget(report);
    }
}

/// Names the seed when a check panics.
struct Report(u64);

impl Drop for Report {
    fn drop(&mut self) {
        eprintln!("replay with SEED={}", self.0);
    }
}
