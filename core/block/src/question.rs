//! Questions of a device's own kind, by commands that change nothing.

/// A command that only asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// Which command, as the device's standard numbers them.
    pub opcode: u8,
    /// Which part of the device is meant, 0 for the whole.
    pub namespace: u32,
    /// What else it says.
    pub words: [u32; 6],
}

/// How the device ended it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// 0, or why it was refused, as the standard numbers reasons.
    pub status: u16,
    /// What it says beside the answer's bytes.
    pub result: u32,
}
