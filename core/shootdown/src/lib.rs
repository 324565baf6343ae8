//! TLB shootdown: who must forget a translation, and when all have.
//!
//! The problem: a CPU remembers translations after the page table has changed, and must
//! forget them before the memory is used for something else. Interrupting another CPU
//! costs microseconds, so the aim is to interrupt none.
//!
//! The idea: each [`Space`] has a *generation* that grows with every change that takes
//! something away. Each CPU knows up to which generation it has forgotten ([`Local`]).
//! - A CPU that **runs** in the space is interrupted ([`Shootdown::flush`]), once for a
//!   whole range. It forgets the range if it had seen all earlier changes, else everything.
//! - A CPU that **rests**, or runs in **another space**, is left alone. It compares the
//!   generations when it wakes ([`Shootdown::wake`]) or returns ([`Shootdown::activate`]).
//! - A **new** mapping is not announced: processors do not remember absent entries.
//!
//! A tag (the processor's PCID) keeps the translations of several spaces apart, so a return
//! to a space finds them still there unless its generation has moved.
//!
//! Who runs where is published by the CPUs themselves: one word each, written only by
//! its owner, says which space is loaded and whether the CPU rests. A space has a set
//! of the CPUs that ever loaded it, so an initiator reads the words of these only. The
//! exact set would cost two locked writes to shared lines at each switch; this one costs a read.
//!
//! A request lies in its initiator's slot, and a bit in the target's mail says whose slots to
//! look at. An initiator that waits serves its own mail, so two can not block each other.
//! A target whose mail is not empty has an interrupt under way and is sent no second one.
//!
//! # Why no flush is missed
//!
//! Initiator: change the table, raise the generation, **fence**, read the CPUs' words.
//! CPU that loads or wakes: write the word, **fence**, read the generation. One of the two fences
//! comes first (Dekker). If the CPU's, the initiator sees its word and interrupts it. If
//! the initiator's, the CPU sees the generation, forgets, and then walks the changed table.
//!
//! # Why frames can be given back
//!
//! [`Shootdown::flush`] returns after each CPU either acknowledged (release, acquire), or published
//! with release that it left or rests, which the initiator read with acquire: its
//! last use of the old translation happened before.
//!
//! # Tables
//!
//! Processors also remember tables on the way to a page, and walk through them by
//! speculation, which may set accessed bits in what the table's memory has become. So before
//! a table is given back ([`Shootdown::flush_tables`]) each CPU forgets it that has the root
//! loaded, resting or about to leave. One that rests loads the kernel's table instead, since the
//! next table would wake it again; who wakes it for work activates the space. To forget the translation of any page under a tag forgets
//! all tables under it (Intel SDM volume 3, 4.10.4.1; AMD's volume 2, 5.5.2), so one page is enough.
//!
//! `tests/model` has `loom` try the interleavings of exactly this code, and shows that it
//! notices when a fence or a comparison is missing. `tests/random.rs` tries long histories of more
//! spaces than there are tags.
//!
//! Not here: page tables, batching of pages (`mach`'s gather), the instructions.
#![no_std]
#![forbid(unsafe_code)]

mod cpu;
mod event;
mod hardware;
mod local;
mod request;
mod space;

pub use cpu::Shootdown;
pub use event::{Event, Events};
pub use hardware::Hardware;
pub use local::{Local, TAGS_MAX};
pub use space::{Pages, Space};
