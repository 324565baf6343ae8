//! Commands that enter the running machine: the kernel's agent (`sietch exec`, `sietch cp`, `sietch kill`).
//!
//! The problem: a machine has no shell, no ssh server and no init that could start a second program,
//! and the one program that it was made for must not notice that somebody looks in.
//!
//! The idea: one thread of the kernel's reads frames (`core/agent`) from a port of the host's and starts processes
//! that no process made (`task::start_parentless`): each leads a session of its own, stands where process 1 stood
//! when its program began, and is nobody's child, so that only the agent hears of its end. Between its
//! descriptors and the frames stand pipes, or a pseudo terminal.
//!
//! ```text
//! port.rs     frames from and to the host
//! server.rs   the thread: frames to channels, and what it sleeps for
//! channel.rs  one command: bytes, credit, its end
//! stdio.rs    pipes and terminals: their two sides
//! launch.rs   what the new process does before its program runs
//! tree/       processes that run no program: copies of files
//! links.rs    others: changes of the machine's links
//! ```
//!
//! Nothing is polled: the thread sleeps until the port, a pipe, a terminal or the end of a process wakes it. It reads
//! a frame only when there is room for an answer, and the host always takes what there is; so each frame can be
//! answered at once, and nobody waits in a circle.
//!
//! What is held for a channel is bounded: input up to the window that the host was given, output nothing at all, as it
//! stays in pipe or terminal until there is credit and room.
//!
//! When nobody listens any more, a command goes on as with docker: what it writes is read and dropped, its input
//! ends, and where it has a terminal that is hung up.
//!
//! Not here: who multiplexes on the host, and what its commands mean to users (`host/cli`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod channel;
mod environment;
mod launch;
mod links;
mod port;
mod server;
mod stdio;
mod tree;

use alloc::vec::Vec;

use linux_task::start::Identity;
use mach::sync::Once;
use task::Template;

/// What a command has that does not say otherwise: what process 1 was given.
#[derive(Clone, Copy)]
pub struct Defaults {
    /// The environment.
    pub environment: &'static [Vec<u8>],
    /// Where it starts; empty for the root.
    pub directory: &'static [u8],
    /// For whom it runs, if it is not to run for another user.
    pub identity: Identity<'static>,
}

/// Where commands begin. The machine has one agent.
static SETTING: Once<Setting> = Once::new();

struct Setting {
    defaults: Defaults,
    template: Template,
}

/// Starts the agent, for which the current thread, that of process 1, is the model; once, when its
/// program is about to run. Without a port of the host's for it there is none.
pub fn start(defaults: Defaults) {
    SETTING.call_once(|| Setting {
        defaults,
        template: Template::of_current(),
    });
    if tty::console::has_agent_port()
        && !task::start_kernel_thread(server::run, *b"agent\0\0\0\0\0\0\0\0\0\0\0")
    {
        mach::klog!("no memory for the agent: nobody can enter the machine");
    }
}
