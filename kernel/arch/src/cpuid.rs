//! What the processor can do (CPUID).

use core::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};

/// Leaf `leaf`, or zeros if the processor does not have it.
pub fn leaf(leaf: u32, sub: u32) -> CpuidResult {
    let top = __cpuid(leaf & 0xffff_0000).eax;
    let hypervisor = leaf >> 16 == 0x4000;
    if leaf > top || (hypervisor && !has_hypervisor()) {
        return CpuidResult {
            eax: 0,
            ebx: 0,
            ecx: 0,
            edx: 0,
        };
    }
    __cpuid_count(leaf, sub)
}

fn bit(word: u32, index: u32) -> bool {
    word >> index & 1 != 0
}

/// A hypervisor announces itself.
pub fn has_hypervisor() -> bool {
    bit(__cpuid(1).ecx, 31)
}

/// CRC32 (with SSE4.2).
pub fn has_crc32() -> bool {
    bit(__cpuid(1).ecx, 20)
}

/// Where hypervisors sign.
const SIGNATURE: u32 = 0x4000_0000;

/// This is a guest of KVM.
pub fn is_under_kvm() -> bool {
    let said = leaf(SIGNATURE, 0);
    [said.ebx, said.ecx, said.edx] == [*b"KVMK", *b"VMKV", *b"M\0\0\0"].map(u32::from_le_bytes)
}

/// What KVM offers its guests, by the bits of its leaf (Linux's
/// `Documentation/virt/kvm/x86/cpuid.rst`); none under another hypervisor or on a machine.
fn kvm_features() -> u32 {
    match is_under_kvm() {
        true => leaf(SIGNATURE + 1, 0).eax,
        false => 0,
    }
}

/// KVM can be told by memory that an interrupt was served.
pub fn has_kvm_pv_eoi() -> bool {
    bit(kvm_features(), 6)
}

/// Nobody stops a CPU: there is no hypervisor, or KVM was told that none of the guest's is ever
/// preempted (`KVM_HINTS_REALTIME`).
pub fn are_cpus_dedicated() -> bool {
    match is_under_kvm() {
        true => bit(leaf(SIGNATURE + 1, 0).edx, 0),
        false => !has_hypervisor(),
    }
}

/// The local APIC is reachable by MSR.
pub fn has_x2apic() -> bool {
    bit(leaf(1, 0).ecx, 21)
}

/// Process-context identifiers tag the TLB.
pub fn has_pcid() -> bool {
    bit(leaf(1, 0).ecx, 17)
}

/// The local timer takes a TSC value.
pub fn has_tsc_deadline() -> bool {
    bit(leaf(1, 0).ecx, 24)
}

/// XSAVE and XCR0.
pub fn has_xsave() -> bool {
    bit(leaf(1, 0).ecx, 26)
}

/// XSAVEOPT: stores only what changed.
pub fn has_xsaveopt() -> bool {
    bit(leaf(0xd, 1).eax, 0)
}

/// Hardware random numbers by RDRAND.
pub fn has_rdrand() -> bool {
    bit(leaf(1, 0).ecx, 30)
}

/// Hardware entropy by RDSEED.
pub fn has_rdseed() -> bool {
    bit(leaf(7, 0).ebx, 18)
}

/// FS and GS bases by instruction.
pub fn has_fsgsbase() -> bool {
    bit(leaf(7, 0).ebx, 0)
}

/// The kernel cannot execute user pages.
pub fn has_smep() -> bool {
    bit(leaf(7, 0).ebx, 7)
}

/// The kernel cannot touch user pages unless it says so.
pub fn has_smap() -> bool {
    bit(leaf(7, 0).ebx, 20)
}

/// Programs cannot read descriptor-table addresses.
pub fn has_umip() -> bool {
    bit(leaf(7, 0).ecx, 2)
}

/// RDPID.
pub fn has_rdpid() -> bool {
    bit(leaf(7, 0).ecx, 22)
}

/// RDTSCP, and with it `TSC_AUX`.
pub fn has_rdtscp() -> bool {
    bit(leaf(0x8000_0001, 0).edx, 27)
}

/// Pages of 1 GiB.
pub fn has_gigabyte_pages() -> bool {
    bit(leaf(0x8000_0001, 0).edx, 26)
}
