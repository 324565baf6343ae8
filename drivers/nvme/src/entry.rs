//! Submission and completion entries (sections 3.3.3.1 and 3.3.3.2), and what commands are made of.

use hal::Span;

/// Bytes of a submission.
pub(crate) const ENTRY_BYTES: usize = 64;
/// Bytes of a completion.
pub(crate) const COMPLETION_BYTES: usize = 16;

/// Admin commands.
pub(crate) mod admin {
    pub const DELETE_SUBMISSIONS: u8 = 0x00;
    pub const CREATE_SUBMISSIONS: u8 = 0x01;
    pub const DELETE_COMPLETIONS: u8 = 0x04;
    pub const CREATE_COMPLETIONS: u8 = 0x05;
    pub const IDENTIFY: u8 = 0x06;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const GET_FEATURES: u8 = 0x0a;
    pub const NAMESPACE_ATTACHMENT: u8 = 0x15;
    pub const VIRTUALIZATION: u8 = 0x1c;
    pub const DOORBELL_BUFFER: u8 = 0x7c;

    /// Of Set Features: how many queues there may be.
    pub const FEATURE_QUEUES: u32 = 7;
    /// Of a queue that is created.
    pub const QUEUE_IS_CONTIGUOUS: u32 = 1;
    pub const QUEUE_INTERRUPTS: u32 = 1 << 1;
}

/// What Identify is asked for: a namespace, the controller, its namespaces, what it has for others and who those are.
pub(crate) mod identify {
    pub const NAMESPACE: u32 = 0;
    pub const CONTROLLER: u32 = 1;
    pub const ACTIVE: u32 = 2;
    pub const PRIMARY: u32 = 0x14;
    pub const SECONDARIES: u32 = 0x15;
}

/// Commands of the NVM command set.
pub(crate) mod nvm {
    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const WRITE_ZEROES: u8 = 0x08;
    pub const DATASET_MANAGEMENT: u8 = 0x09;

    /// Of a write: it is on the medium when it is complete.
    pub const FORCE_UNIT_ACCESS: u32 = 1 << 30;
    /// Of zeroes: the room may be given up.
    pub const DEALLOCATE: u32 = 1 << 25;
    /// Of dataset management: what the ranges hold is of no use any more.
    pub const ATTRIBUTE_DEALLOCATE: u32 = 1 << 2;
}

/// A command, but for its identifier, which the queue gives.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Entry {
    pub opcode: u8,
    pub namespace: u32,
    /// Where the first page of data lies.
    pub page: u64,
    /// Where the second lies, or the list of all further ones.
    pub pages: u64,
    /// Dwords 10 to 12.
    pub words: [u32; 3],
    /// Dwords 13 to 15, which only questions of others have.
    pub more: [u32; 3],
}

impl Entry {
    /// An admin command of this namespace, 0 for none.
    pub(crate) fn admin(opcode: u8, namespace: u32, words: [u32; 3]) -> Self {
        Self {
            opcode,
            namespace,
            words,
            ..Self::default()
        }
    }

    /// With memory that lies in one page.
    pub(crate) fn with_page(self, span: Span) -> Self {
        Self {
            page: span.addr().0,
            ..self
        }
    }

    /// As the controller reads it, eight bytes each.
    pub(crate) fn quads(&self, id: u16) -> [u64; 8] {
        let [word_10, word_11, word_12] = self.words.map(u64::from);
        let first = u64::from(self.opcode) | u64::from(id) << 16 | u64::from(self.namespace) << 32;
        let [word_13, word_14, word_15] = self.more.map(u64::from);
        [
            first,
            0,
            0,
            self.page,
            self.pages,
            word_10 | word_11 << 32,
            word_12 | word_13 << 32,
            word_14 | word_15 << 32,
        ]
    }
}

/// A completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub id: u16,
    pub status: StatusField,
    /// What the command says beside.
    pub result: u32,
}

/// How a command ended: the code in the lowest eight bits, its type in three more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StatusField(pub u16);

impl StatusField {
    /// Code and type, without what follows from them.
    fn code(self) -> u16 {
        self.0 & 0x7ff
    }

    pub(crate) fn is_success(self) -> bool {
        self.code() == 0
    }

    /// The controller does not know the command, a field of it, or the namespace: nothing was tried.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self.code(), 0x01 | 0x02 | 0x0b)
    }
}
