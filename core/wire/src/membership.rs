//! What reports of both families' multicast protocols share (RFC 3376, RFC 3810).

/// What a group record says about our listening, sources aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordKind {
    /// 1: nothing but the sources listed; none means that we do not listen.
    IsInclude,
    /// 2: all but the sources listed; none means that we listen.
    IsExclude,
    /// 3: from now on like `IsInclude`.
    ToInclude,
    /// 4: from now on like `IsExclude`.
    ToExclude,
    /// About single sources, or unknown.
    Other(u8),
}

impl RecordKind {
    pub(crate) const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::IsInclude,
            2 => Self::IsExclude,
            3 => Self::ToInclude,
            4 => Self::ToExclude,
            other => Self::Other(other),
        }
    }

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::IsInclude => 1,
            Self::IsExclude => 2,
            Self::ToInclude => 3,
            Self::ToExclude => 4,
            Self::Other(number) => number,
        }
    }
}

/// A response code: as it stands if its highest bit is clear, else a floating-point number
/// with three bits of exponent above a mantissa of `mantissa_bits` (RFC 3376 4.1.1 with 4,
/// RFC 3810 5.1.3 with 12).
pub(crate) const fn code_to_units(code: u32, mantissa_bits: u32) -> u32 {
    let high = 1 << (mantissa_bits + 3);
    if code < high {
        return code;
    }
    let mantissa = code & ((1 << mantissa_bits) - 1);
    let exponent = code >> mantissa_bits & 7;
    (mantissa | 1 << mantissa_bits) << (exponent + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_codes_are_numbers_and_large_ones_are_floating() {
        assert_eq!(code_to_units(127, 4), 127);
        assert_eq!(code_to_units(128, 4), 16 << 3);
        assert_eq!(code_to_units(255, 4), 31 << 10);
        assert_eq!(code_to_units(0x7fff, 12), 0x7fff);
        assert_eq!(code_to_units(0xffff, 12), 0x1fff << 10);
    }
}
