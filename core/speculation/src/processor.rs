//! What a processor says of itself.

/// Who made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vendor {
    /// Intel.
    Intel,
    /// AMD, and Hygon, whose processors are AMD's.
    Amd,
    /// Anybody else.
    Other,
}

/// Vulnerabilities that it says it has not (IA32_ARCH_CAPABILITIES, and AMD's words in CPUID).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names are those of the vendors' bits")]
pub struct Unaffected {
    pub rdcl: bool,
    pub ssb: bool,
    pub mds: bool,
    pub taa: bool,
    pub mmio: bool,
    pub gds: bool,
    pub rfds: bool,
    pub bhi: bool,
    pub its: bool,
    pub srso: bool,
    pub tsa: bool,
}

/// Features against them that it offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// SPEC_CTRL.IBRS may stay set for ever (IBRS_ALL; AMD: always-on mode).
    pub enhanced_ibrs: bool,
    /// EFER.AutoIBRS (AMD).
    pub automatic_ibrs: bool,
    /// SPEC_CTRL.STIBP.
    pub stibp: bool,
    /// The barrier for indirect branches (IBPB).
    pub barrier: bool,
    /// SPEC_CTRL.BHI_DIS_S.
    pub bhi_dis_s: bool,
    /// VERW clears buffers (MD_CLEAR).
    pub verw: bool,
    /// VERW clears the registers' files too (RFDS_CLEAR).
    pub rfds_clear: bool,
    /// Microcode closes Downfall unless it is told not to (GDS_CTRL).
    pub gds_control: bool,
}

/// A processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    /// Its maker.
    pub vendor: Vendor,
    /// Family, the extended one added.
    pub family: u32,
    /// Model, the extended one in front.
    pub model: u32,
    /// A hypervisor stands between it and us.
    pub is_virtual: bool,
    /// It has transactional memory (RTM).
    pub has_rtm: bool,
    /// What it has not.
    pub unaffected: Unaffected,
    /// What it offers.
    pub features: Features,
}
