//! The flaws, and what the files tell of each. The sentences begin as Linux's do, because
//! programs look at the first word.

use core::fmt::{Result, Write};

use crate::plan::{Plan, SPEC_CTRL_BHI_DIS_S, SPEC_CTRL_STIBP};
use crate::processor::{Processor, Vendor};

/// A flaw with a file in /sys/devices/system/cpu/vulnerabilities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are Linux's own")]
pub enum Flaw {
    GatherDataSampling,
    IndirectTargetSelection,
    ItlbMultihit,
    L1tf,
    Mds,
    Meltdown,
    MmioStaleData,
    RegFileDataSampling,
    Retbleed,
    SpecRstackOverflow,
    SpecStoreBypass,
    SpectreV1,
    SpectreV2,
    Srbds,
    Tsa,
    TsxAsyncAbort,
}

const NONE: &str = "Not affected";
const VULNERABLE: &str = "Vulnerable";
const HOST: &str = "Unknown: Dependent on hypervisor status";
const CLEARED: &str = "Mitigation: Clear CPU buffers; SMT Host state unknown";
const NO_MICROCODE: &str = "Vulnerable: No microcode";

impl Flaw {
    /// Writes what is true of it here, without a line's end.
    pub fn write(self, processor: &Processor, plan: &Plan, text: &mut dyn Write) -> Result {
        match self {
            Self::SpectreV2 => spectre_v2(processor, plan, text),
            flaw => text.write_str(flaw.sentence(processor, plan)),
        }
    }

    fn sentence(self, processor: &Processor, plan: &Plan) -> &'static str {
        let Processor { without, means, .. } = processor;
        let intel = processor.is_intel();
        match self {
            Self::SpectreV1 => "Vulnerable: swapgs barriers and call table only",
            // Entries that are not present name pages that the program itself owns.
            Self::L1tf if intel && !without.rdcl => "Mitigation: PTEs name own pages only",
            Self::Meltdown if intel && !without.rdcl => VULNERABLE,
            Self::ItlbMultihit if intel && !without.mds => "KVM: Mitigation: VMX unsupported",
            Self::Mds if processor.has_mds() => buffers(processor, plan),
            Self::TsxAsyncAbort if processor.has_taa() => buffers(processor, plan),
            Self::MmioStaleData if processor.has_mmio_stale_data() => buffers(processor, plan),
            Self::RegFileDataSampling if intel && means.rfds_clear && !without.rfds => {
                buffers(processor, plan)
            }
            Self::RegFileDataSampling if intel && !without.rfds => NO_MICROCODE,
            Self::GatherDataSampling if intel && !without.gds => match () {
                () if means.gds_control => "Mitigation: Microcode",
                () if processor.is_virtual => HOST,
                () => NO_MICROCODE,
            },
            Self::Srbds if intel && !without.mds => HOST,
            Self::SpecStoreBypass if !without.ssb && processor.vendor != Vendor::Other => {
                VULNERABLE
            }
            Self::Retbleed => retbleed(processor, plan),
            Self::SpecRstackOverflow if has_srso(processor) => VULNERABLE,
            Self::IndirectTargetSelection if intel && !without.its => VULNERABLE,
            Self::Tsa if has_tsa(processor) => VULNERABLE,
            _ => NONE,
        }
    }
}

fn buffers(processor: &Processor, plan: &Plan) -> &'static str {
    match (plan.clear_buffers, processor.means.verw) {
        (true, true) => CLEARED,
        (true, false) => "Vulnerable: Clear CPU buffers attempted, no microcode",
        (false, true) => VULNERABLE,
        (false, false) => NO_MICROCODE,
    }
}

/// Zen to Zen 2 are not helped by IBRS; Intel's are where it stays on.
fn retbleed(processor: &Processor, plan: &Plan) -> &'static str {
    match processor.vendor {
        Vendor::Amd if matches!(processor.family, 0x15..=0x18) => VULNERABLE,
        Vendor::Intel if plan.guards_kernel() => "Mitigation: Enhanced IBRS",
        Vendor::Intel => VULNERABLE,
        Vendor::Amd | Vendor::Other => NONE,
    }
}

/// Zen to Zen 4.
fn has_srso(processor: &Processor) -> bool {
    let is_zen = matches!(processor.family, 0x17..=0x19);
    processor.vendor == Vendor::Amd && is_zen && !processor.without.srso
}

/// Zen 3 and Zen 4.
fn has_tsa(processor: &Processor) -> bool {
    processor.vendor == Vendor::Amd && processor.family == 0x19 && !processor.without.tsa
}

fn spectre_v2(processor: &Processor, plan: &Plan, text: &mut dyn Write) -> Result {
    let kernel = match plan.guards_kernel() {
        true => "Mitigation: Enhanced / Automatic IBRS",
        false => VULNERABLE,
    };
    let state = |on: bool, yes: &'static str| if on { yes } else { "disabled" };
    let barrier = state(plan.barrier, "conditional");
    let stibp = state(plan.spec_ctrl & SPEC_CTRL_STIBP != 0, "always-on");
    write!(text, "{kernel}; IBPB: {barrier}; STIBP: {stibp}")?;
    if plan.fill_returns {
        text.write_str("; RSB filling")?;
    }
    match processor.is_intel() && !processor.without.bhi {
        false => text.write_str("; BHI: Not affected"),
        true if plan.spec_ctrl & SPEC_CTRL_BHI_DIS_S != 0 => text.write_str("; BHI: BHI_DIS_S"),
        true => text.write_str("; BHI: Vulnerable"),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;

    use super::*;
    use crate::processor::{Means, Without};

    fn processor(vendor: Vendor, family: u32) -> Processor {
        Processor {
            vendor,
            family,
            model: 0,
            is_virtual: false,
            has_rtm: false,
            without: Without::default(),
            means: Means::default(),
        }
    }

    fn told(flaw: Flaw, processor: &Processor, is_off: bool) -> String {
        let mut text = String::new();
        let plan = Plan::new(processor, is_off);
        flaw.write(processor, &plan, &mut text)
            .expect("a string takes it");
        text
    }

    #[test]
    fn a_processor_that_offers_nothing_costs_nothing() {
        for vendor in [Vendor::Intel, Vendor::Amd, Vendor::Other] {
            assert_eq!(Plan::new(&processor(vendor, 15), false), Plan::default());
        }
    }

    #[test]
    fn old_intel_is_flawed_and_says_so() {
        let old = processor(Vendor::Intel, 6);
        assert_eq!(told(Flaw::Meltdown, &old, false), "Vulnerable");
        assert!(told(Flaw::Mds, &old, false).contains("No microcode"));
        assert!(told(Flaw::SpectreV2, &old, false).starts_with("Vulnerable"));
        assert_eq!(told(Flaw::Retbleed, &old, false), "Vulnerable");
    }

    #[test]
    fn means_are_used_unless_they_are_switched_off() {
        let mut new = processor(Vendor::Intel, 6);
        new.means = Means {
            enhanced_ibrs: true,
            stibp: true,
            barrier: true,
            bhi_dis_s: true,
            verw: true,
            ..Means::default()
        };
        let plan = Plan::new(&new, false);
        assert_eq!(plan.spec_ctrl, 1 | 2 | 1 << 10);
        assert!(plan.barrier && plan.fill_returns && plan.clear_buffers);
        assert!(told(Flaw::Mds, &new, false).starts_with("Mitigation: Clear CPU buffers"));
        assert!(told(Flaw::SpectreV2, &new, false).starts_with("Mitigation: Enhanced"));
        assert_eq!(Plan::new(&new, true), Plan::default());
        assert_eq!(told(Flaw::Mds, &new, true), "Vulnerable");
        assert!(told(Flaw::SpectreV2, &new, true).starts_with("Vulnerable; IBPB: disabled"));
    }

    #[test]
    fn automatic_ibrs_takes_the_place_of_the_other() {
        let mut zen = processor(Vendor::Amd, 0x19);
        zen.means = Means {
            enhanced_ibrs: true,
            automatic_ibrs: true,
            ..Means::default()
        };
        let plan = Plan::new(&zen, false);
        assert!(plan.automatic_ibrs && plan.spec_ctrl == 0);
        assert_eq!(told(Flaw::Meltdown, &zen, false), "Not affected");
        assert_eq!(told(Flaw::SpecRstackOverflow, &zen, false), "Vulnerable");
        zen.without.srso = true;
        assert_eq!(told(Flaw::SpecRstackOverflow, &zen, false), "Not affected");
    }

    #[test]
    fn what_a_processor_has_not_needs_nothing() {
        let mut sound = processor(Vendor::Intel, 6);
        sound.means.verw = true;
        sound.without = Without {
            rdcl: true,
            mds: true,
            mmio: true,
            rfds: true,
            ..Without::default()
        };
        assert!(!Plan::new(&sound, false).clear_buffers);
        for flaw in [Flaw::Meltdown, Flaw::L1tf, Flaw::Mds, Flaw::MmioStaleData] {
            assert_eq!(told(flaw, &sound, false), "Not affected");
        }
        sound.has_rtm = true;
        assert!(
            Plan::new(&sound, false).clear_buffers,
            "transactions leak too"
        );
    }
}
