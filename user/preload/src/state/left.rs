//! What goes on in another program, from both sides (`legacy`): what this one leaves, and what it was left.

use std::collections::HashMap;
use std::ffi::c_int;
use std::io;
use std::sync::Arc;

use posix::{Errno, Left, Legacy, NUMBERS_MAX, Result};

use super::children::{Forking, Loan, QUEUE_PATIENCE, claim, set_all};
use super::{Hosting, State, descriptor, now};
use crate::claims::Channel;
use crate::numbers::{self, Whose};
use crate::patience::close_own;
use crate::{config, inherited};

/// What a program that is started is told, and its end of the channel to us.
type Lending = (Legacy, Option<Channel>);

impl State {
    /// What goes on in a program that this process becomes, or starts, but for connections of its own. Nothing changes by that.
    fn legacy(&mut self, is_left: &impl Fn(&[u32]) -> bool) -> Legacy {
        let mut legacy = Legacy::default();
        let mut heirlooms = self.heirlooms.clone();
        let can_move = config::get().is_some_and(|config| !config.is_card());
        if let Some(host) = self.host().filter(|host| can_move && host.is_up()) {
            heirlooms.extend(host.heirlooms());
        }
        for mut heirloom in heirlooms {
            let numbers = std::mem::take(&mut heirloom.numbers);
            legacy.heirlooms.extend(left(&numbers, heirloom, is_left));
        }
        for loan in &self.loans {
            let what = (loan.channel.number().cast_unsigned(), loan.place);
            legacy.loans.extend(left(&loan.numbers, what, is_left));
        }
        legacy
    }

    /// What this process leaves to the program that it becomes, with copies of the connections that this process has, which ends with its program.
    pub fn legacy_of_all(&mut self) -> Legacy {
        let mut legacy = self.legacy(&inherited::is_kept);
        let can_move = config::get().is_some_and(|config| !config.is_card());
        let Some(host) = self.host().filter(|host| can_move && host.is_up()) else {
            return legacy;
        };
        for (open, numbers) in host.movable() {
            let copied = inode_of(&numbers).and_then(|inode| {
                let what = host.copy(&open).ok()?;
                Some(Left { inode, what })
            });
            legacy.connections.extend(copied);
        }
        let queue = descriptor(host).cast_unsigned();
        legacy.queue = (!legacy.connections.is_empty()).then_some(queue);
        legacy
    }

    /// Lends what a program that is about to be started inherits; what it is to be told, and its end of the
    /// channel, which stays open until it has been started. `None` if it inherits nothing.
    pub fn lend_to_program(&mut self, is_left: &impl Fn(&[u32]) -> bool) -> Option<Lending> {
        self.prepare_for_child();
        if let Some(forking) = &mut self.forking {
            forking.connections.retain(|(_, numbers)| is_left(numbers));
        }
        let forking = self
            .forking
            .take()
            .filter(|forking| !forking.connections.is_empty());
        let mut legacy = self.legacy(is_left);
        for (place, (_, numbers)) in (0..).zip(forking.iter().flat_map(|it| &it.connections)) {
            let channel = forking.as_ref().map_or(-1, |it| it.childs.number());
            let what = (channel.cast_unsigned(), place);
            legacy.loans.extend(left(numbers, what, is_left));
        }
        if legacy.is_empty() {
            return None;
        }
        let mut childs = None;
        self.forking = forking.map(|forking| {
            let [ours, theirs] = [forking.ours, forking.childs];
            childs = Some(theirs);
            Forking {
                ours,
                childs: Channel::none(),
                connections: forking.connections,
            }
        });
        self.go_on_beside_child();
        Some((legacy, childs))
    }

    /// In a program that something was left to: it is ours if it is used, and connections that nobody else has at once.
    pub fn adopt(&mut self, legacy: &Legacy, numbers: &HashMap<u64, Vec<u32>>) {
        numbers::inherit_by(claim);
        self.hosting = Hosting::Inherited;
        let numbers_of = |inode: u64| numbers.get(&inode).cloned().unwrap_or_default();
        for left in &legacy.heirlooms {
            let mut heirloom = left.what.clone();
            heirloom.numbers = numbers_of(left.inode);
            set_all(&heirloom.numbers, Whose::Inherited);
            self.heirlooms.push(heirloom);
        }
        self.heirlooms
            .retain(|heirloom| !heirloom.numbers.is_empty());
        self.adopt_loans(legacy, &numbers_of);
        if legacy.queue.is_some() {
            self.adopt_connections(legacy, &numbers_of);
        }
        let has_none = self.heirlooms.is_empty() && self.loans.is_empty();
        if let (Hosting::Inherited, true) = (&self.hosting, has_none) {
            self.hosting = Hosting::Unopened;
        }
    }

    fn adopt_loans(&mut self, legacy: &Legacy, numbers_of: &impl Fn(u64) -> Vec<u32>) {
        let mut channels: HashMap<u32, Arc<Channel>> = HashMap::new();
        for left in &legacy.loans {
            let ((channel, place), numbers) = (left.what, numbers_of(left.inode));
            let channel = channels
                .entry(channel)
                .or_insert_with(|| Arc::new(Channel::adopt(channel.cast_signed())));
            if !numbers.is_empty() {
                set_all(&numbers, Whose::Inherited);
                let mut loan = Loan::new(channel.clone(), place, numbers);
                // Whoever started us may have started others.
                loan.is_shared = true;
                self.loans.push(loan);
            }
        }
    }

    /// Their frames come here when they are made; until then to the queue of who has left them, which ends then.
    fn adopt_connections(&mut self, legacy: &Legacy, numbers_of: &impl Fn(u64) -> Vec<u32>) {
        if self.own_host(QUEUE_PATIENCE).is_some() {
            for left in &legacy.connections {
                let numbers = numbers_of(left.inode);
                match self.adopt_connection(&left.what, &numbers) {
                    Ok(()) => set_all(&numbers, Whose::Socket),
                    Err(error) => {
                        set_all(&numbers, Whose::Parent);
                        let why = io::Error::from_raw_os_error(error.number());
                        self.complain(&format!("a connection: {why}"));
                    }
                }
            }
        } else {
            let all = legacy.connections.iter();
            all.for_each(|left| set_all(&numbers_of(left.inode), Whose::Parent));
        }
        if let Some(queue) = legacy.queue {
            close_own(queue.cast_signed());
        }
    }

    /// One that execve has closed is closed now.
    fn adopt_connection(&mut self, bytes: &[u8], numbers: &[u32]) -> Result<()> {
        const CLOSED: u32 = NUMBERS_MAX as u32 - 1;
        let queue = self.queue().ok_or(Errno::NETWORK_DOWN)?;
        let host = self.host().ok_or(Errno::NETWORK_DOWN)?;
        let made = match numbers {
            [] => host.attach(bytes, &[CLOSED], now())?,
            numbers => host.attach(bytes, numbers, now())?,
        };
        if let Some((local, peer)) = host.ends(&made)? {
            let moved = host.link().move_flow(local, peer, queue);
            moved.map_err(|_| Errno::NO_BUFFERS)?;
        }
        if numbers.is_empty() {
            host.close(CLOSED);
        }
        host.turn(now());
        host.flush();
        Ok(())
    }

    /// Whether a number was inherited and not used.
    pub fn has_inherited(&self, number: c_int) -> bool {
        let number = number.cast_unsigned();
        let heirlooms = self.heirlooms.iter().map(|it| &it.numbers);
        let loans = self.loans.iter().map(|it| &it.numbers);
        heirlooms
            .chain(loans)
            .any(|numbers| numbers.contains(&number))
    }

    /// Another number for such a one.
    pub fn share_number(&mut self, old: c_int, new: c_int) {
        let heirlooms = self.heirlooms.iter_mut().map(|it| &mut it.numbers);
        let loans = self.loans.iter_mut().map(|it| &mut it.numbers);
        let mut all = heirlooms.chain(loans);
        if let Some(numbers) = all.find(|numbers| numbers.contains(&old.cast_unsigned())) {
            numbers.push(new.cast_unsigned());
            numbers::set(new, Whose::Inherited);
        }
    }
}

/// Something by the inode of its numbers, if it is left.
fn left<T>(numbers: &[u32], what: T, is_left: &impl Fn(&[u32]) -> bool) -> Option<Left<T>> {
    let inode = inode_of(numbers).filter(|_| is_left(numbers))?;
    Some(Left { inode, what })
}

fn inode_of(numbers: &[u32]) -> Option<u64> {
    inherited::inode_of(numbers.first()?.cast_signed(), libc::S_IFSOCK)
}
