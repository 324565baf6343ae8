//! The I/O APIC: which pin raises which vector on which CPU (82093AA datasheet).

const SELECT: u64 = 0x00;
const WINDOW: u64 = 0x10;
const VERSION: u32 = 1;
const FIRST_ENTRY: u32 = 0x10;

/// Does not deliver while set.
pub const MASKED: u32 = 1 << 16;
/// Level-triggered, else edge.
pub const LEVEL: u32 = 1 << 15;
/// Asserted when low, else when high.
pub const ACTIVE_LOW: u32 = 1 << 13;

/// Raises an NMI, whatever the vector.
pub const DELIVER_NMI: u32 = 0b100 << 8;

/// In the upper half of an entry: it names an entry of an IOMMU's table, above this bit (VT-d
/// 5.1.5).
const NAMES_ENTRY: u32 = 1 << 16;
const INDEX_SHIFT: u32 = 17;

/// One I/O APIC, by the virtual address of its registers.
#[derive(Clone, Copy, Debug)]
pub struct IoApic {
    base: u64,
}

impl IoApic {
    /// Takes the controller whose registers are mapped uncached at `base`.
    ///
    /// # Safety
    /// There is one, and calls on it are never made at the same time by two CPUs.
    pub const unsafe fn new(base: u64) -> Self {
        Self { base }
    }

    fn read(self, index: u32) -> u32 {
        // SAFETY: `new`'s caller vouched for the registers.
        unsafe {
            ((self.base + SELECT) as *mut u32).write_volatile(index);
            ((self.base + WINDOW) as *mut u32).read_volatile()
        }
    }

    fn write(self, index: u32, value: u32) {
        // SAFETY: `new`'s caller vouched for the registers.
        unsafe {
            ((self.base + SELECT) as *mut u32).write_volatile(index);
            ((self.base + WINDOW) as *mut u32).write_volatile(value);
        }
    }

    /// Pins of this controller.
    pub fn pins(self) -> u32 {
        (self.read(VERSION) >> 16 & 0xff) + 1
    }

    /// Routes `pin` to `vector` on the CPU `apic_id`, with trigger flags from above.
    pub fn route(self, pin: u32, vector: u8, apic_id: u32, flags: u32) {
        self.lead(pin, apic_id);
        self.write(FIRST_ENTRY + pin * 2, u32::from(vector) | flags);
    }

    /// Leads `pin` to the CPU `apic_id`, and leaves the rest of its entry as it is. An interrupt of the
    /// pin goes to the one CPU or to the other.
    pub fn lead(self, pin: u32, apic_id: u32) {
        self.write(FIRST_ENTRY + pin * 2 + 1, apic_id << 24);
    }

    /// The entry of `pin`: flags with the vector, and the CPU's APIC.
    pub fn entry(self, pin: u32) -> (u32, u32) {
        let at = FIRST_ENTRY + pin * 2;
        (self.read(at), self.read(at + 1) >> 24)
    }

    /// Routes `pin` by entry `index` of an IOMMU's table, which must say the same vector.
    pub fn route_remapped(self, pin: u32, vector: u8, index: u8, flags: u32) {
        let high = u32::from(index) << INDEX_SHIFT | NAMES_ENTRY;
        self.write(FIRST_ENTRY + pin * 2 + 1, high);
        self.write(FIRST_ENTRY + pin * 2, u32::from(vector) | flags);
    }

    /// Sets or clears [`MASKED`] of `pin`.
    pub fn set_masked(self, pin: u32, masked: bool) {
        let entry = self.read(FIRST_ENTRY + pin * 2);
        let entry = if masked {
            entry | MASKED
        } else {
            entry & !MASKED
        };
        self.write(FIRST_ENTRY + pin * 2, entry);
    }
}
