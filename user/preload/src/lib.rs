//! `libsietch.so`: put in front of a dynamic Linux program by `LD_PRELOAD`, its IPv4 sockets are on a queue of the
//! program's own (`docs/bypass.md`).
//!
//! # Problem
//! A program calls the C library, whose sockets are numbers of the kernel's. We want its calls on some
//! numbers, from any thread, and none of the others to become slower or different.
//!
//! # Idea
//! Each number of ours is that of a real descriptor: a socket of the kernel's of the same kind, to which
//! nobody ever sends. So numbers never collide, `fcntl`, `fstat` and options that we have no use for
//! are the kernel's, and a call that we do not know fails as on a socket without a peer. One byte for each
//! number says whose it is (`numbers`), which is all that a call on others' numbers pays. What POSIX
//! means is in [`posix`], one [`Host`](posix::Host) under one lock (`state`), or one for each of several threads (`shards`).
//!
//! | module | what |
//! |---|---|
//! | `sockets`, `reading`, `writing`, `messages`, `descriptors`, `sets`, `polls`, `files`, `stdio` | the functions that programs call |
//! | `passing` | sockets that a program passes to another |
//! | `hand_over`, `repair`, `kernel_address` | sockets that go over to the kernel's stack |
//! | `transfer` | bytes as their flags say |
//! | `uring`, `ring_hooks` | rings of io_uring, and what they hear of numbers |
//! | `next` | those of the C library behind them |
//! | `memory` | what programs point to |
//! | `numbers`, `state`, `config` | whose number it is, the host and its lock, the environment |
//! | `shards` | further hosts, for threads that wait for connections of their own |
//! | `patience`, `ears` | waiting for frames, files and other threads at once, and for a card's interrupts |
//! | `blocking` | calls that wait for one socket |
//! | `keeper` | looks after frames while the program is elsewhere |
//! | `seen` | shows sockets and counters to the machine's tools |
//! | `logged` | files that are on a log, not in the file system |
//! | `fork`, `exit` | what a child has of it, and what a program's end does |
//! | `lending`, `backlog`, `claiming`, `claims` | connections that go to another process, who gets them, what the two say |
//! | `exec`, `execl`, `spawn`, `inherited_fds`, `loading`, `inherited`, `without_library` | functions that start another program, and what goes on there |
//! | `control`, `exchange`, `successor` | who asks for a newer library, what the older one does, and the newer one |
//!
//! # Waiting
//! Who has nothing to do lets the lock go and waits in ppoll(2) for frames, for the files that it was asked about, and
//! for a bell of its own (an eventfd); where its frames come by a card, in epoll_pwait2(2), which tells of each interrupt once. Whoever has the lock when something happens to a socket rings the
//! bells of all who wait. A bell is given out under the lock, so no change is missed between a look and the wait.
//!
//! # Invariants (cited by the `SAFETY` comments)
//! - **Named:** the function that `dlsym` finds under a name has the type that stands beside the name.
//! - **Caller:** what a program passes to a function of the C library is as its manual says: pointers lead
//!   to as much memory as the call may read or write. (The kernel would say EFAULT; here it is a fault.)
//! - **Ours:** descriptors of the library's own stay open until it has been exchanged, and then until no thread of its is
//!   in a call on them.
//! - **Thread:** FS leads to the thread's control block, whose first word is its own address (psABI of x86-64,
//!   "Thread-Local Storage").
//!
//! Lock order: that of a ring (`uring`), that of `shards`, the states' by their places, then that of `logged`, then that of `seen`; nothing else is taken under it but the standard library's own. No function of the
//! program's is called under it.
//!
//! # Not here
//! Programs that make system calls themselves (Go); signal handlers that use the sockets;
//! restarting an interrupted call.
#![deny(unsafe_op_in_unsafe_fn)]

mod ancillary;
mod answer;
mod backlog;
mod blocking;
mod claiming;
mod claims;
mod config;
mod control;
mod descriptors;
mod ears;
mod exchange;
mod exec;
mod execl;
mod exit;
mod files;
mod fork;
mod hand_over;
mod inherited;
mod inherited_fds;
mod keeper;
mod kernel_address;
mod lending;
mod loading;
mod logged;
mod memory;
mod messages;
mod next;
mod numbers;
mod passing;
mod patience;
mod polls;
mod reading;
mod repair;
mod restart;
mod ring_hooks;
mod seen;
mod sets;
mod shards;
mod sockets;
mod spawn;
mod spawn_actions;
mod state;
mod stdio;
mod successor;
mod transfer;
mod uring;
mod waiting;
mod without_library;
mod writing;
