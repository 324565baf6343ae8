//! Why a controller is not driven, or a command of the admin queue failed.

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// There are no registers, or the function is gone.
    Absent,
    /// It needs larger pages than 4096 bytes, has another set of commands, or queues without room.
    NotSupported,
    /// It did not come up, or not go down, in its own time.
    NotReady,
    /// It says that it cannot go on.
    Fatal,
    /// A command of the admin queue did not end in time.
    TimedOut,
    /// Completions are nonsense.
    Broken,
    /// It refused a command: the status field, without the phase.
    Refused(u16),
    /// It gives us no queue.
    NoQueue,
    /// There is no memory for queues.
    OutOfMemory,
    /// It has no namespace that we can use.
    NoNamespace,
    /// It has no controller for such a virtual function.
    NoFunction,
    /// Who keeps its admin queue sends no such command.
    NotPermitted,
    /// It came back with another shape, or a namespace did.
    Changed,
}
