//! What an administrator may choose about connections that are over.

use base::Duration;

/// Which of our own finished connections a new one of ours may follow under the same name
/// before their time has passed (Linux: `tcp_tw_reuse`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reuse {
    /// None.
    Never,
    /// Those whose other end was on this host too.
    SameHost,
    /// All whose peer used timestamps: they tell the old connection's segments from the
    /// new one's on both sides.
    All,
}

/// Rules for TIME_WAIT. `docs/time-wait.md` has the reasons for the defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeWaitRules {
    /// Seconds that a finished connection is remembered, 1 to 600.
    pub secs: u16,
    /// Whether `connect` may follow a remembered connection.
    pub reuse: Reuse,
    /// Milliseconds that it must be over before that (Linux: `tcp_tw_reuse_delay`).
    pub reuse_delay_ms: u16,
    /// Whether connections between two programs of this host are remembered too. Their
    /// packets never leave our memory, so none can be late.
    pub same_host_waits: bool,
    /// RFC 1337: no reset ends the wait but one that answers our challenge to a SYN. Off, any
    /// reset with exactly the number that we expect does (Linux: `tcp_rfc1337` is off).
    pub rfc1337: bool,
    /// For teaching and for tests: the kernel of "The Case of the Clumsy Kernel", which knows
    /// SYNs by their sequence number alone, numbers connections at random, and waits for its
    /// timer when the peer remembers an older connection.
    pub is_clumsy: bool,
}

impl TimeWaitRules {
    /// Those of the clumsy kernel, which remembered its own connections too.
    pub fn clumsy() -> Self {
        Self {
            same_host_waits: true,
            is_clumsy: true,
            ..Self::default()
        }
    }

    pub(super) fn wait(&self) -> Duration {
        Duration::from_secs(u64::from(self.secs.clamp(1, 600)))
    }

    pub(super) fn reuse_delay(&self) -> Duration {
        Duration::from_millis(u64::from(self.reuse_delay_ms))
    }
}

impl Default for TimeWaitRules {
    fn default() -> Self {
        Self {
            secs: 60,
            reuse: Reuse::All,
            reuse_delay_ms: 1000,
            same_host_waits: false,
            rfc1337: true,
            is_clumsy: false,
        }
    }
}
