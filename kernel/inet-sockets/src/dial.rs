//! In which order shards are asked for a port to connect from.
//!
//! Each shard has its own part of the ports that lead to a peer, so when one has no more
//! those of the next are used, beginning with the calling CPU's shard, or the socket's own. A search that finds
//! none has looked at the whole range; so as not to repeat that for each connection, the
//! shard is asked last for [`REST`].

use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};

use base::{CpuId, CpuSet, Duration};
use mach::cpu::MAX_CPUS;

use net::stack::NetStack;

/// How long a shard is asked last.
const REST: Duration = Duration::from_secs(1);

/// Until when each shard is asked last, in nanoseconds since the boot. Only the first stack has
/// several shards to ask, so this is one for all.
static RESTS_UNTIL: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// All shards that may have a connection to `peer`, each once; first of those for loopback the one
/// in which the socket is, which was chosen as it was opened.
pub(crate) fn shards_in_turn(
    stack: &NetStack,
    peer: IpAddr,
    socket: u16,
) -> impl Iterator<Item = u16> + use<> {
    let (first, count) = match stack.is_within_loopback(None, peer) {
        true => (socket, stack.loopback_count()),
        false => (stack.own(), stack.count()),
    };
    let resting = match count {
        1 => CpuSet::EMPTY,
        _ => resting(count),
    };
    let all = move || (0..count).map(move |step| (first + step) % count);
    let rests = move |shard: &u16| resting.contains(CpuId(u32::from(*shard)));
    all()
        .filter(move |shard| !rests(shard))
        .chain(all().filter(rests))
}

/// The shards that are asked last, each by the number of its CPU.
fn resting(count: u16) -> CpuSet {
    let now = mach::time::now().as_nanos();
    let until = |shard: u16| RESTS_UNTIL[usize::from(shard) % MAX_CPUS].load(Ordering::Relaxed);
    (0..count)
        .filter(|shard| until(*shard) > now)
        .map(|shard| CpuId(u32::from(shard)))
        .collect()
}

/// `shard` had no port.
pub(crate) fn note_exhausted(shard: u16) {
    let until = mach::time::now() + REST;
    RESTS_UNTIL[usize::from(shard) % MAX_CPUS].store(until.as_nanos(), Ordering::Relaxed);
}
