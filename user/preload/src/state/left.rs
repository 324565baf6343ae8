//! What goes on in another program, from both sides (`inherited_fds`): what this one leaves, and what it was left.

use std::collections::HashMap;
use std::ffi::c_int;
use std::io;
use std::sync::Arc;

use posix::{Errno, InheritedSockets, Left, NUMBERS_MAX, Result};

use super::backlog::Backlog;
use super::children::{Forking, Loan, QUEUE_PATIENCE, claim, set_all};
use super::{Hosting, State, descriptor, now};
use crate::claims::Channel;
use crate::numbers::{self, Whose};
use crate::patience::close_own;
use crate::{config, inherited};

/// What a program that is started is told, and its end of the channel to us.
type Lending = (InheritedSockets, Option<Channel>);

impl State {
    /// What goes on in a program that this process becomes, or starts, but for connections of its own. Nothing changes by that.
    fn inherited(&mut self, is_left: &impl Fn(&[u32]) -> bool) -> InheritedSockets {
        let mut inherited = InheritedSockets::default();
        let mut unconnected = self.unconnected.clone();
        let can_move = config::get().is_some_and(|config| !config.is_card());
        if let Some(host) = self.host().filter(|host| can_move && host.is_up()) {
            unconnected.extend(host.unconnected());
        }
        for mut socket in unconnected {
            let numbers = std::mem::take(&mut socket.numbers);
            inherited
                .unconnected
                .extend(left(&numbers, socket, is_left));
        }
        for loan in &self.loans {
            let what = (loan.channel.number().cast_unsigned(), loan.place);
            inherited.loans.extend(left(&loan.numbers, what, is_left));
        }
        for (loan, numbers) in self.numbered_backlogs() {
            let what = (loan.channel.number().cast_unsigned(), loan.place);
            inherited.loans.extend(left(&numbers, what, is_left));
        }
        inherited
    }

    /// What this process leaves to the program that it becomes, with copies of the connections that this process has, which ends with its program.
    pub fn sockets_for_exec(&mut self) -> InheritedSockets {
        let mut inherited = self.inherited(&inherited::is_kept);
        let can_move = config::get().is_some_and(|config| !config.is_card());
        let Some(host) = self.host().filter(|host| can_move && host.is_up()) else {
            return inherited;
        };
        for (open, numbers) in host.movable() {
            let copied = inode_of(&numbers).and_then(|inode| {
                let what = host.copy(&open).ok()?;
                Some(Left { inode, what })
            });
            inherited.connections.extend(copied);
        }
        let queue = descriptor(host).cast_unsigned();
        inherited.queue = (!inherited.connections.is_empty()).then_some(queue);
        inherited
    }

    /// Lends what a program that is about to be started inherits; what it is to be told, and its end of the
    /// channel, which stays open until it has been started. `None` if it inherits nothing.
    pub fn lend_to_program(&mut self, is_left: &impl Fn(&[u32]) -> bool) -> Option<Lending> {
        if !self.inherited(is_left).unconnected.is_empty() {
            self.share_with_child();
        }
        self.prepare_to_lend();
        if let Some(forking) = &mut self.forking {
            forking.connections.retain(|(_, numbers)| is_left(numbers));
        }
        let forking = self
            .forking
            .take()
            .filter(|forking| !forking.connections.is_empty());
        let mut inherited = self.inherited(is_left);
        for (place, (_, numbers)) in (0..).zip(forking.iter().flat_map(|it| &it.connections)) {
            let channel = forking.as_ref().map_or(-1, |it| it.childs.number());
            let what = (channel.cast_unsigned(), place);
            inherited.loans.extend(left(numbers, what, is_left));
        }
        if inherited.is_empty() {
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
        Some((inherited, childs))
    }

    /// In a program that something was left to: it is ours if it is used, and connections that nobody else has at once.
    pub fn adopt(&mut self, inherited: &InheritedSockets, numbers: &HashMap<u64, Vec<u32>>) {
        numbers::inherit_by(claim);
        self.hosting = Hosting::Inherited;
        let numbers_of = |inode: u64| numbers.get(&inode).cloned().unwrap_or_default();
        for left in &inherited.unconnected {
            let mut socket = left.what.clone();
            socket.numbers = numbers_of(left.inode);
            set_all(&socket.numbers, Whose::Inherited);
            self.unconnected.push(socket);
        }
        self.unconnected.retain(|socket| !socket.numbers.is_empty());
        self.adopt_loans(inherited, &numbers_of);
        if inherited.queue.is_some() {
            self.adopt_connections(inherited, &numbers_of);
        }
        let has_none = self.unconnected.is_empty() && self.loans.is_empty();
        if let (Hosting::Inherited, true) = (&self.hosting, has_none) {
            self.hosting = Hosting::Unopened;
        }
    }

    fn adopt_loans(&mut self, inherited: &InheritedSockets, numbers_of: &impl Fn(u64) -> Vec<u32>) {
        let mut channels: HashMap<u32, Arc<Channel>> = HashMap::new();
        let mut loans = Vec::new();
        for left in &inherited.loans {
            let ((channel, place), numbers) = (left.what, numbers_of(left.inode));
            let channel = channels
                .entry(channel)
                .or_insert_with(|| Arc::new(Channel::adopt(channel.cast_signed())));
            if !numbers.is_empty() {
                set_all(&numbers, Whose::Inherited);
                let mut loan = Loan::new(channel.clone(), place, numbers);
                // Whoever started us may have started others.
                loan.is_shared = true;
                loans.push(loan);
            }
        }
        self.add_loans(loans.into_iter());
    }

    /// Their frames come here when they are made; until then to the queue of who has left them, which ends then.
    fn adopt_connections(
        &mut self,
        inherited: &InheritedSockets,
        numbers_of: &impl Fn(u64) -> Vec<u32>,
    ) {
        if self.own_host(QUEUE_PATIENCE).is_some() {
            for left in &inherited.connections {
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
            let all = inherited.connections.iter();
            all.for_each(|left| set_all(&numbers_of(left.inode), Whose::Parent));
        }
        if let Some(queue) = inherited.queue {
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
        let unconnected = self.unconnected.iter().map(|it| &it.numbers);
        let loans = self.loans.iter().map(|it| &it.numbers);
        unconnected
            .chain(loans)
            .any(|numbers| numbers.contains(&number))
    }

    /// By how many numbers a connection of another process's is had, if this is one of them.
    pub fn copies_of_loan(&self, number: c_int) -> usize {
        let loan = self.loans.iter().find(|loan| loan.has(number));
        loan.map_or(0, |loan| loan.numbers.len())
    }

    /// Another number for such a one.
    pub fn share_number(&mut self, old: c_int, new: c_int) {
        let unconnected = self.unconnected.iter_mut().map(|it| &mut it.numbers);
        let loans = self.loans.iter_mut().map(|it| &mut it.numbers);
        let backlogs = self.backlogs.iter_mut().map(Backlog::numbers);
        let all = unconnected.chain(loans).chain(backlogs);
        for numbers in all.filter(|numbers| numbers.contains(&old.cast_unsigned())) {
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
