//! What is done.

use crate::processor::{Processor, Vendor};

/// IA32_SPEC_CTRL.IBRS.
pub const SPEC_CTRL_IBRS: u64 = 1;
/// IA32_SPEC_CTRL.STIBP.
pub const SPEC_CTRL_STIBP: u64 = 1 << 1;
/// IA32_SPEC_CTRL.BHI_DIS_S.
pub const SPEC_CTRL_BHI_DIS_S: u64 = 1 << 10;

/// What is done about vulnerabilities. All of it is off where the processor does not need or
/// offer it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Bits of IA32_SPEC_CTRL that are set at start and stay; 0 to leave the register alone.
    pub spec_ctrl: u64,
    /// EFER.AutoIBRS is set at start.
    pub automatic_ibrs: bool,
    /// The barrier for indirect branches, when a CPU goes from one user's program to another's.
    pub barrier: bool,
    /// The return stack is filled there as well.
    pub fill_returns: bool,
    /// VERW before each return to a program.
    pub clear_buffers: bool,
}

impl Plan {
    /// For a processor; nothing if the owner said `mitigations=off`.
    pub fn new(processor: &Processor, is_off: bool) -> Self {
        if is_off {
            return Self::default();
        }
        let features = &processor.features;
        let set = |offered: bool, bit: u64| if offered { bit } else { 0 };
        let has_ibrs = features.enhanced_ibrs && !features.automatic_ibrs;
        Self {
            spec_ctrl: set(has_ibrs, SPEC_CTRL_IBRS)
                | set(features.stibp, SPEC_CTRL_STIBP)
                | set(
                    features.bhi_dis_s && !processor.unaffected.bhi,
                    SPEC_CTRL_BHI_DIS_S,
                ),
            automatic_ibrs: features.automatic_ibrs,
            barrier: features.barrier,
            fill_returns: features.barrier,
            clear_buffers: processor.needs_verw(),
        }
    }

    /// Whether what a program trains is kept from the kernel's branches.
    pub(crate) fn guards_kernel(&self) -> bool {
        self.automatic_ibrs || self.spec_ctrl & SPEC_CTRL_IBRS != 0
    }
}

impl Processor {
    /// Whether buffers leak and VERW helps.
    fn needs_verw(&self) -> bool {
        let leaks = self.has_mds() || self.has_taa() || self.has_mmio_stale_data();
        self.features.verw && leaks || self.features.rfds_clear && !self.unaffected.rfds
    }

    pub(crate) fn is_intel(&self) -> bool {
        self.vendor == Vendor::Intel
    }

    pub(crate) fn has_mds(&self) -> bool {
        self.is_intel() && !self.unaffected.mds
    }

    pub(crate) fn has_taa(&self) -> bool {
        self.is_intel() && self.has_rtm && !self.unaffected.taa
    }

    pub(crate) fn has_mmio_stale_data(&self) -> bool {
        self.is_intel() && !self.unaffected.mmio
    }
}
