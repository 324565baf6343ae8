//! Which requests a cancellation means (io_uring_prep_cancel(3)).

/// What a cancellation looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Key {
    /// What the program called it.
    pub user_data: Option<u64>,
    /// On which file: whatever stands for it.
    pub file: Option<usize>,
    /// Which operation.
    pub opcode: Option<u8>,
}

/// What is known of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// What the program called it.
    pub user_data: u64,
    /// On which file.
    pub file: Option<usize>,
    /// Which operation.
    pub opcode: u8,
}

impl Key {
    /// Whether it means a request; without conditions it means all.
    pub fn means(&self, facts: &Facts) -> bool {
        self.user_data.is_none_or(|name| name == facts.user_data)
            && self.file.is_none_or(|file| Some(file) == facts.file)
            && self.opcode.is_none_or(|opcode| opcode == facts.opcode)
    }
}
