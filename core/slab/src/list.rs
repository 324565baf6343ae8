//! Stacks of free objects that are linked through the objects themselves.

use core::ptr::NonNull;

/// What lies in a free object.
pub(crate) struct Node {
    pub next: Option<NonNull<Node>>,
    /// Used only in the first object of a chain in the depot.
    pub next_chain: Option<NonNull<Node>>,
}

/// A counted stack of free objects of one class.
pub(crate) struct List {
    head: Option<NonNull<Node>>,
    pub len: usize,
}

impl List {
    pub const fn new() -> Self {
        Self { head: None, len: 0 }
    }

    #[inline(always)]
    pub fn pop(&mut self) -> Option<NonNull<Node>> {
        let node = self.head?;
        // SAFETY: Free: the node is ours and was initialised by `push`.
        self.head = unsafe { node.as_ref().next };
        self.len -= 1;
        Some(node)
    }

    /// # Safety
    /// The object satisfies the invariant Free, and nobody else uses it from now on.
    #[inline(always)]
    pub unsafe fn push(&mut self, node: NonNull<Node>) {
        // SAFETY: Free: the caller gave us at least 16 aligned bytes.
        unsafe {
            node.write(Node {
                next: self.head,
                next_chain: None,
            })
        };
        self.head = Some(node);
        self.len += 1;
    }

    /// Splits the first `count` objects off as a list of their own.
    pub fn take(&mut self, count: usize) -> List {
        let mut taken = List::new();
        while taken.len < count {
            let Some(node) = self.pop() else { break };
            // SAFETY: Free: it was on our list and is on no other.
            unsafe { taken.push(node) };
        }
        taken
    }

    /// The first object, when the whole list is handed on by it.
    pub fn into_head(self) -> Option<NonNull<Node>> {
        self.head
    }

    /// The list that starts with `head`.
    ///
    /// # Safety
    /// `head` came from [`List::into_head`] of a list of `len` objects.
    pub unsafe fn from_head(head: NonNull<Node>, len: usize) -> Self {
        Self {
            head: Some(head),
            len,
        }
    }
}
