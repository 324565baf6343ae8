//! Our TCP counters under the names that administrators know.
//!
//! Linux shows them in `/proc/net/netstat`, illumos in `netstat -s`. One name may stand for
//! several of ours, and the other way round: each line says which. A name that could only
//! show zero is left out.

use crate::counters::{Count, DropReason, ResetReason, Stats};

/// A name and its value.
type Line = (&'static str, u64);

impl Stats {
    /// `TcpExt:` of Linux's `/proc/net/netstat`.
    pub fn tcp_ext(&self) -> impl Iterator<Item = Line> {
        self.openings()
            .into_iter()
            .chain(self.ends())
            .chain(self.transfers())
            .chain(self.losses())
            .chain(self.doubts())
    }

    /// SYNs and what becomes of them.
    fn openings(&self) -> [Line; 8] {
        let count = |what| self.counts.get(what);
        let dropped = |why| self.drops.get(why);
        let overflows = dropped(DropReason::AcceptQueueFull);
        let refused = dropped(DropReason::SynQueueFull) + dropped(DropReason::SynLimited);
        let limited = dropped(DropReason::SocketLimit);
        [
            ("SyncookiesSent", count(Count::CookiesSent)),
            ("SyncookiesRecv", count(Count::CookiesAccepted)),
            ("SyncookiesFailed", dropped(DropReason::BadCookie)),
            ("EmbryonicRsts", count(Count::EmbryonicResets)),
            ("PAWSActive", dropped(DropReason::BadEcho)),
            ("ListenOverflows", overflows + count(Count::SynsHeld)),
            ("ListenDrops", overflows + refused + limited),
            ("TCPReqQFullDrop", refused),
        ]
    }

    /// TIME_WAIT, and connections that ended with a reset.
    fn ends(&self) -> [Line; 11] {
        let count = |what| self.counts.get(what);
        let reset = |why| self.resets.get(why);
        let recycled = count(Count::TimeWaitsReused) + count(Count::TimeWaitsRecycled);
        let unwanted = reset(ResetReason::LingerZero) + reset(ResetReason::DataAfterClose);
        let challenges = count(Count::ChallengeAcks) + count(Count::TimeWaitAcks);
        [
            ("TW", count(Count::TimeWaitsExpired)),
            ("TWRecycled", recycled),
            ("TWKilled", count(Count::TimeWaitsReset)),
            ("PAWSTimewait", self.drops.get(DropReason::TimeWaitPaws)),
            ("TCPTimeWaitOverflow", count(Count::TimeWaitsEvicted)),
            ("TCPACKSkippedTimeWait", count(Count::TimeWaitAcksSkipped)),
            ("TCPChallengeACK", challenges),
            ("TCPAbortOnData", unwanted),
            ("TCPAbortOnClose", reset(ResetReason::Unread)),
            ("TCPAbortOnTimeout", count(Count::TimedOut)),
            ("TCPAbortOnMemory", reset(ResetReason::OrphanLimit)),
        ]
    }

    fn transfers(&self) -> [Line; 7] {
        let count = |what| self.counts.get(what);
        let dropped = |why| self.drops.get(why);
        [
            ("OfoPruned", dropped(DropReason::EarlyPruned)),
            ("TCPRcvQDrop", dropped(DropReason::TcpMemoryTight)),
            ("TCPMemoryPressures", count(Count::MemoryPressures)),
            ("PAWSEstab", self.drops.get(DropReason::OldTimestamp)),
            ("TCPTimeouts", count(Count::Timeouts)),
            ("TCPOFOQueue", count(Count::OutOfOrder)),
            ("TCPKeepAlive", count(Count::KeepaliveProbes)),
        ]
    }

    /// What was found lost, by which sign, and sent again.
    fn losses(&self) -> [Line; 7] {
        let count = |what| self.counts.get(what);
        [
            ("TCPSackRecovery", count(Count::SackRecoveries)),
            ("TCPRenoRecovery", count(Count::RenoRecoveries)),
            ("TCPLostRetransmit", count(Count::RetransmitsLost)),
            ("TCPFastRetrans", count(Count::FastRetransmits)),
            ("TCPSlowStartRetrans", count(Count::SlowStartRetransmits)),
            ("TCPLossProbes", count(Count::LossProbes)),
            ("TCPLossProbeRecovery", count(Count::LossProbeRecoveries)),
        ]
    }

    /// Losses that were none, and other things that SACK tells.
    fn doubts(&self) -> [Line; 8] {
        let count = |what| self.counts.get(what);
        [
            ("TCPSACKReneging", count(Count::SackReneging)),
            ("TCPSACKReorder", count(Count::ReorderingsSeen)),
            ("TCPFullUndo", count(Count::FullUndos)),
            ("TCPDSACKUndo", count(Count::DuplicateSackUndos)),
            ("TCPDSACKOldSent", count(Count::DuplicateSacksSent)),
            ("TCPDSACKOfoSent", count(Count::DuplicateSacksEarly)),
            ("TCPDSACKRecv", count(Count::DuplicateSacks)),
            ("TCPSpuriousRTOs", count(Count::SpuriousTimeouts)),
        ]
    }

    /// What illumos' `netstat -s` says of opening and of trouble.
    pub fn illumos_tcp(&self) -> [Line; 8] {
        let count = |what| self.counts.get(what);
        let dropped = |why| self.drops.get(why);
        let refused = dropped(DropReason::SynQueueFull) + dropped(DropReason::SynLimited);
        [
            ("tcpActiveOpens", count(Count::ActiveOpens)),
            ("tcpPassiveOpens", count(Count::PassiveOpens)),
            ("tcpRetransSegs", count(Count::Retransmits)),
            ("tcpOutRsts", count(Count::ResetsOut)),
            ("tcpTimRetrans", count(Count::Timeouts)),
            ("tcpTimKeepaliveProbe", count(Count::KeepaliveProbes)),
            ("tcpListenDrop", dropped(DropReason::AcceptQueueFull)),
            ("tcpListenDropQ0", refused),
        ]
    }
}
