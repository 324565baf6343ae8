//! The controllers of virtual functions, as the physical function's rules them: how many queues and interrupts each
//! has, which namespaces, and whether it is online (base specification 2.0, section 8.26; 1.4, section 8.5).
//!
//! # Idea
//! The *primary* controller has a pool of queues and interrupts of which it gives to *secondary* ones while they are
//! offline. One that is online starts like any other controller, with a driver of its own, and sees the
//! namespaces that are attached to it.
//!
//! A reset of the primary controller takes all secondary ones offline, so what each had is kept here and given
//! again. Attachments of namespaces outlive resets by themselves.
//!
//! # Invariants
//! - **Apart**: a secondary controller is named by its virtual function, and found in the list that the controller
//!   gives; only those that were given to us (`count`) are looked for. A list that makes no sense finds nothing.
//!
//! Not here: making virtual functions (`kernel/pci`); which namespace is whose.

use alloc::vec::Vec;

use block::Question;
use hal::DmaSource;

use crate::controller::Controller;
use crate::entry::{Entry, admin};
use crate::error::Error;
use crate::identify::{byte, word};
use crate::machine::Machine;

/// What Virtualization Management does (figure 256 of 1.4).
const OFFLINE: u32 = 7;
const ASSIGN: u32 = 8;
const ONLINE: u32 = 9;
/// Of what kind of resource.
const QUEUES: u32 = 0;
const INTERRUPTS: u32 = 1 << 8;

/// Namespace Attachment.
const ATTACH: u32 = 0;
const DETACH: u32 = 1;

/// Entries of the list of secondary controllers, and the bytes of each, the list's head as well.
const LIST_MAX: usize = 127;
const ENTRY_BYTES: usize = 32;
/// The admin queue's pair and one more: with fewer a controller does not go online.
const QUEUES_MIN: u16 = 2;

/// Offsets in the capabilities of the primary controller: how many flexible resources there are, and how many one
/// secondary controller may have.
const FLEXIBLE_QUEUES: usize = 32;
const QUEUES_EACH: usize = 44;
const FLEXIBLE_INTERRUPTS: usize = 64;
const INTERRUPTS_EACH: usize = 76;

/// What a secondary controller has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Secondary {
    /// The number of its virtual function, from 1.
    pub function: u16,
    /// By which the subsystem knows it.
    pub controller: u16,
    /// Pairs of queues, that of the admin queue among them.
    pub queues: u16,
    /// Entries of its MSI-X table.
    pub interrupts: u16,
    /// It takes commands.
    pub is_online: bool,
}

/// What each secondary controller is to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    queues: u16,
    interrupts: u16,
}

impl Share {
    /// An equal part for each of `count`, as far as the controller gives one so much.
    fn parse(bytes: &[u8], count: u16) -> Result<Self, Error> {
        let part = |total: usize, each: usize| {
            let total = word(bytes, total) / u32::from(count.max(1));
            total.min(word(bytes, each) & 0xffff) as u16
        };
        let share = Self {
            queues: part(FLEXIBLE_QUEUES, QUEUES_EACH),
            interrupts: part(FLEXIBLE_INTERRUPTS, INTERRUPTS_EACH),
        };
        match share.queues >= QUEUES_MIN && share.interrupts != 0 {
            true => Ok(share),
            false => Err(Error::NoQueue),
        }
    }
}

/// The secondary controllers that a list names.
fn parse_list(bytes: &[u8]) -> Vec<Secondary> {
    let count = usize::from(byte(bytes, 0)).min(LIST_MAX);
    let entries = bytes.chunks_exact(ENTRY_BYTES).skip(1).take(count);
    let half = |entry: &[u8], at| word(entry, at) as u16;
    let parse = |entry: &[u8]| Secondary {
        controller: half(entry, 0),
        is_online: byte(entry, 4) & 1 != 0,
        function: half(entry, 8),
        queues: half(entry, 10),
        interrupts: half(entry, 12),
    };
    entries.map(parse).collect()
}

impl<D: DmaSource, M: Machine> Controller<D, M> {
    /// The secondary controllers of the first `count` virtual functions.
    pub fn secondaries(&mut self, count: u16) -> Result<Vec<Secondary>, Error> {
        let bytes = self.with_admin(|admin, machine| admin.secondary_controllers(machine))?;
        let mut all = parse_list(&bytes);
        all.retain(|known| (1..=count).contains(&known.function));
        Ok(all)
    }

    /// Divides the flexible resources among the controllers of the first `count` virtual functions and takes them
    /// online, now and after each reset of this controller.
    pub fn take_online(&mut self, count: u16) -> Result<(), Error> {
        let bytes = self.with_admin(|admin, machine| admin.primary_capabilities(machine))?;
        let share = Share::parse(&bytes, count)?;
        self.tenants = Some((count, share));
        self.restore_secondaries()
    }

    /// After a reset: all as before.
    pub(crate) fn restore_secondaries(&mut self) -> Result<(), Error> {
        let Some((count, share)) = self.tenants else {
            return Ok(());
        };
        for secondary in self.secondaries(count)? {
            self.renew(secondary, share)?;
        }
        Ok(())
    }

    /// Stops the controller of one virtual function, which forgets its queues and what was under way, and takes it
    /// online again. Others go on.
    pub fn reset_secondary(&mut self, function: u16) -> Result<(), Error> {
        let (count, share) = self.tenants.ok_or(Error::NoFunction)?;
        let secondary = self.secondary(function, count)?;
        self.renew(secondary, share)
    }

    /// Gives a namespace to the controller of a virtual function.
    pub fn attach(&mut self, namespace: u32, function: u16) -> Result<(), Error> {
        self.move_namespace(ATTACH, namespace, function)
    }

    /// Takes a namespace from the controller of a virtual function: what was under way there fails.
    pub fn detach(&mut self, namespace: u32, function: u16) -> Result<(), Error> {
        self.move_namespace(DETACH, namespace, function)
    }

    fn move_namespace(&mut self, what: u32, namespace: u32, function: u16) -> Result<(), Error> {
        let (count, _) = self.tenants.ok_or(Error::NoFunction)?;
        let Secondary { controller, .. } = self.secondary(function, count)?;
        let entry = Entry::admin(admin::NAMESPACE_ATTACHMENT, namespace, [what, 0, 0]);
        self.with_admin(|admin, machine| admin.run_on_controller(entry, controller, machine))
    }

    /// Whether a command changes a virtual function's controller and nothing else; `data` is what it takes.
    pub(crate) fn may_rule(&mut self, question: &Question, data: &[u8]) -> bool {
        let [place, ..] = question.words;
        let controller = match (question.opcode, place & 0xffff) {
            (admin::VIRTUALIZATION, OFFLINE | ONLINE) => place >> 16,
            (admin::VIRTUALIZATION, action) if action & !INTERRUPTS == ASSIGN => place >> 16,
            (admin::NAMESPACE_ATTACHMENT, ATTACH | DETACH) => match self.is_own(question.namespace)
            {
                // One controller: how many, and which.
                false if word(data, 0) & 0xffff == 1 => word(data, 0) >> 16,
                _ => return false,
            },
            _ => return false,
        };
        let Some((count, _)) = self.tenants else {
            return false;
        };
        let known = self.secondaries(count).unwrap_or_default();
        known
            .iter()
            .any(|known| u32::from(known.controller) == controller)
    }

    fn secondary(&mut self, function: u16, count: u16) -> Result<Secondary, Error> {
        let all = self.secondaries(count)?;
        let mut all = all.into_iter();
        all.find(|known| known.function == function)
            .ok_or(Error::NoFunction)
    }

    /// Offline, so that it is reset and may be given to, and online with its share.
    fn renew(&mut self, secondary: Secondary, share: Share) -> Result<(), Error> {
        let whose = u32::from(secondary.controller) << 16;
        let steps = [
            (OFFLINE, 0),
            (ASSIGN | QUEUES, share.queues),
            (ASSIGN | INTERRUPTS, share.interrupts),
            (ONLINE, 0),
        ];
        for (action, count) in steps {
            let words = [whose | action, count.into(), 0];
            let entry = Entry::admin(admin::VIRTUALIZATION, 0, words);
            self.with_admin(|admin, machine| admin.run(&entry, machine))?;
        }
        Ok(())
    }
}
