//! What is counted.

probes::counters! {
    /// Something that a CPU did to its TLB or to another's. The first four have Linux's names and
    /// meaning.
    pub enum Event => Events {
        /// A flush asked at least one other CPU.
        RemoteFlush = "nr_tlb_remote_flush",
        /// An interrupt of another CPU was served.
        Received = "nr_tlb_remote_flush_received",
        /// All translations of a space were forgotten.
        ForgotAll = "nr_tlb_local_flush_all",
        /// The translation of one page was forgotten.
        ForgotOne = "nr_tlb_local_flush_one",
        /// A CPU was interrupted.
        Interrupt = "nr_tlb_ipi_sent",
        /// It was not, because it rests.
        SparedIdle = "nr_tlb_ipi_avoided_idle",
        /// It was not, because it runs in another space now.
        SparedElsewhere = "nr_tlb_ipi_avoided_other_space",
        /// It was not, because an interrupt for another request is under way.
        SparedAsked = "nr_tlb_ipi_avoided_pending",
        /// Pages whose translations all CPUs were to forget.
        Pages = "nr_tlb_flush_pages",
        /// A CPU that woke or returned had missed a change.
        CaughtUp = "nr_tlb_late_flush",
        /// A CPU returned to a space and found its translations still valid.
        Kept = "nr_tlb_switch_kept",
    }
}
