//! What a list of actions leaves of a program's numbers in the child that posix_spawn(3) starts.
//!
//! The child does the actions in their order, and then becomes the program, which closes what has FD_CLOEXEC. So they are done here
//! on what one number is known by. The list is the C library's own (`posix_spawn_file_actions_t` of spawn.h); its actions are glibc's
//! (`sysdeps/unix/sysv/linux/spawn_int.h`), as they have been since 2.3. Of one that is not known the child may have any number.

use std::ffi::{c_int, c_void};
use std::slice;

/// `posix_spawn_file_actions_t`, as far as it matters.
#[repr(C)]
struct List {
    allocated: c_int,
    used: c_int,
    actions: *const RawAction,
}

/// `struct __spawn_action`; what words mean depends on the kind.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawAction {
    kind: c_int,
    words: [c_int; 7],
}

/// Most actions that are looked at.
const ACTIONS_MAX: usize = 4096;

/// One that changes what a number names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The number names nothing.
    Close(c_int),
    /// The second names what the first does.
    Copy(c_int, c_int),
    /// The number is another file's.
    Open(c_int),
    /// This number and all above name nothing.
    CloseFrom(c_int),
    /// It changes no number.
    Other,
}

/// What a child does before it is another program.
#[derive(PartialEq, Eq, Debug)]
pub enum Actions {
    /// In their order.
    Known(Vec<Action>),
    /// The child may have anything.
    Unknown,
}

impl Actions {
    /// The actions of a list; none without one.
    ///
    /// # Safety
    /// The list is as posix_spawn(3) says, or null.
    pub unsafe fn read(list: *const c_void) -> Self {
        // SAFETY: **Caller**.
        let Some(list) = (unsafe { list.cast::<List>().as_ref() }) else {
            return Self::Known(Vec::new());
        };
        let used = usize::try_from(list.used).unwrap_or(usize::MAX);
        if used == 0 {
            return Self::Known(Vec::new());
        }
        if used > ACTIONS_MAX || list.actions.is_null() {
            return Self::Unknown;
        }
        // SAFETY: **Caller**: so many are there.
        let actions = unsafe { slice::from_raw_parts(list.actions, used) };
        let known = actions.iter().map(RawAction::known);
        let known: Option<Vec<_>> = known.collect();
        known.map_or(Self::Unknown, Self::Known)
    }

    /// Whether the program that is started has what is behind a number, which an execve may close.
    pub fn leave(&self, number: c_int, is_closed_by_exec: bool) -> bool {
        let Self::Known(actions) = self else {
            return true;
        };
        let mut names = vec![(number, is_closed_by_exec)];
        for action in actions {
            action.apply(&mut names);
        }
        names.iter().any(|(_, is_closed)| !is_closed)
    }
}

impl Action {
    fn apply(self, names: &mut Vec<(c_int, bool)>) {
        match self {
            Self::Close(number) | Self::Open(number) => names.retain(|(it, _)| *it != number),
            Self::CloseFrom(first) => names.retain(|(it, _)| *it < first),
            Self::Copy(from, to) => {
                let is_named = names.iter().any(|(it, _)| *it == from);
                names.retain(|(it, _)| *it != to);
                if is_named {
                    names.push((to, false));
                }
            }
            Self::Other => {}
        }
    }
}

impl RawAction {
    /// `None` of a kind that is not known.
    fn known(&self) -> Option<Action> {
        // What follows begins at the next multiple of eight, for some have a pointer.
        let [_, first, second, ..] = self.words;
        Some(match self.kind {
            0 => Action::Close(first),
            1 => Action::Copy(first, second),
            2 => Action::Open(first),
            5 => Action::CloseFrom(first),
            // A directory to work in, a terminal's foreground.
            3 | 4 | 6 => Action::Other,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    /// A list of the C library's.
    fn actions(add: impl Fn(*mut libc::posix_spawn_file_actions_t)) -> Actions {
        let mut list = MaybeUninit::uninit();
        // SAFETY: it is made, read and given back as the manual says.
        unsafe {
            libc::posix_spawn_file_actions_init(list.as_mut_ptr());
            add(list.as_mut_ptr());
            let actions = Actions::read(list.as_ptr().cast());
            libc::posix_spawn_file_actions_destroy(list.as_mut_ptr());
            actions
        }
    }

    fn copy(list: *mut libc::posix_spawn_file_actions_t, from: c_int, to: c_int) {
        // SAFETY: a list that was made.
        unsafe { libc::posix_spawn_file_actions_adddup2(list, from, to) };
    }

    fn close(list: *mut libc::posix_spawn_file_actions_t, number: c_int) {
        // SAFETY: a list that was made.
        unsafe { libc::posix_spawn_file_actions_addclose(list, number) };
    }

    #[test]
    fn a_child_has_what_it_was_given_and_what_execve_leaves() {
        let actions = actions(|list| copy(list, 7, 0));
        assert!(actions.leave(7, true));
        assert!(actions.leave(8, false));
        assert!(!actions.leave(8, true));
    }

    #[test]
    fn what_is_closed_or_replaced_is_not_the_childs() {
        let actions = actions(|list| {
            copy(list, 7, 0);
            copy(list, 9, 0);
            close(list, 8);
        });
        assert!(!actions.leave(7, true));
        assert!(!actions.leave(8, false));
        assert!(actions.leave(9, true));
    }

    #[test]
    fn a_number_that_is_copied_to_itself_outlives_execve() {
        let actions = actions(|list| copy(list, 7, 7));
        assert!(actions.leave(7, true));
    }

    #[test]
    fn a_path_that_is_opened_takes_the_numbers_place() {
        let actions = actions(|list| {
            // SAFETY: a list that was made, and a path.
            unsafe { libc::posix_spawn_file_actions_addopen(list, 7, c"/".as_ptr(), 0, 0) };
        });
        assert!(!actions.leave(7, false));
        assert!(actions.leave(8, false));
    }

    #[test]
    fn no_list_leaves_what_execve_does() {
        // SAFETY: there is none.
        let actions = unsafe { Actions::read(std::ptr::null()) };
        assert!(actions.leave(7, false) && !actions.leave(7, true));
    }

    #[test]
    fn of_an_action_that_is_not_known_the_child_may_have_anything() {
        let strange = RawAction {
            kind: 99,
            words: [0; 7],
        };
        let list = List {
            allocated: 1,
            used: 1,
            actions: &raw const strange,
        };
        // SAFETY: it is laid out like the C library's.
        let actions = unsafe { Actions::read((&raw const list).cast()) };
        assert_eq!(actions, Actions::Unknown);
        assert!(actions.leave(7, true));
    }
}
