//! Forks, from both sides: what a child may have of its parent's sockets, and how it gets it at their first use.
//!
//! Listeners and sockets for datagrams are opened again (*unconnected*); connections are another process's until they
//! are claimed (*loans*, `lending`). Either needs a host of the child's own, which is opened then.

use std::ffi::c_int;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant as Time};

use posix::{Errno, Host, Numbered, Open, Result, UnconnectedSocket};

use super::backlog::Backlog;
use super::{Held, Hosting, Port, State, lock, now, open};
use crate::claims::{Channel, Kind, Message};
use crate::inherited::is_handed_over;
use crate::numbers::{self, Whose};
use crate::patience::{Bells, close_own};
use crate::{claiming, config, ring_hooks, seen};

/// A connection of another process's that is ours if we use it.
pub struct Loan {
    pub channel: Arc<Channel>,
    /// Its place in the channel's messages.
    pub place: u32,
    pub numbers: Vec<u32>,
    /// Other processes have the same channel, so that closing our numbers says nothing of theirs.
    pub(super) is_shared: bool,
}

impl Loan {
    /// One that nobody else has.
    pub fn new(channel: Arc<Channel>, place: u32, numbers: Vec<u32>) -> Self {
        Self {
            channel,
            place,
            numbers,
            is_shared: false,
        }
    }

    pub(super) fn has(&self, number: c_int) -> bool {
        self.numbers.contains(&number.cast_unsigned())
    }

    fn is_handed_over(&self) -> bool {
        let number = self.numbers.first();
        number.is_some_and(|number| is_handed_over(number.cast_signed()))
    }

    fn set(&self, whose: Whose) {
        set_all(&self.numbers, whose);
    }
}

/// What a channel's other side may claim.
pub struct Lent {
    pub channel: Channel,
    /// By their places in messages; none for what is not lent any more.
    pub opens: Vec<Option<Arc<Open>>>,
}

/// What waits for claims, given before `main`.
pub static LEND: OnceLock<fn(Lent)> = OnceLock::new();

/// What waits until a connection is to be claimed back by a channel, given before `main`.
pub static RETURN: OnceLock<fn(Arc<Channel>)> = OnceLock::new();

/// What a child that is being forked may claim.
pub(super) struct Forking {
    pub ours: Channel,
    pub childs: Channel,
    pub connections: Vec<Numbered>,
}

impl Held {
    /// A number of this host's names nothing of ours any more.
    pub fn release(&mut self, number: c_int) {
        self.0.release(number);
    }
}

/// A number names nothing of ours any more. What it is is sure with its host's lock only: meanwhile another process may claim
/// the connection, or give it back.
pub fn release(number: c_int) {
    match Held::of(number) {
        Ok(mut held) => held.release(number),
        // There is no host, but there may be what could be claimed.
        Err(_) => lock().release(number),
    }
}

pub(super) fn set_all(numbers: &[u32], whose: Whose) {
    let all = numbers.iter().map(|number| number.cast_signed());
    all.for_each(|number| numbers::set(number, whose));
}

impl State {
    /// A child is about to be forked: who gets new peers, and what it may claim of us.
    pub fn prepare_for_child(&mut self) {
        self.share_with_child();
        self.prepare_to_lend();
    }

    /// Who comes from now on comes to who accepts. What has come until now is looked at, so that it is known who waits.
    pub(super) fn share_with_child(&mut self) {
        if let Some(host) = self.host() {
            host.share_with_child();
            if host.is_withdrawn() && host.is_up() {
                host.look_at_all(now());
            }
        }
    }

    /// What somebody may claim of us.
    pub(super) fn prepare_to_lend(&mut self) {
        let can_lend = config::get().is_some_and(|config| !config.is_card());
        let Some(host) = self.host().filter(|host| can_lend && host.is_up()) else {
            return;
        };
        let mut connections = host.movable();
        connections.extend(host.crowded_listeners());
        if connections.is_empty() {
            return;
        }
        // Without descriptors the child hears that it cannot have them.
        self.forking = Channel::pair().ok().map(|[ours, childs]| Forking {
            ours,
            childs,
            connections,
        });
    }

    /// There is a child, or it could not be made: then the channel is closed, and nothing is lent.
    pub fn go_on_beside_child(&mut self) {
        self.loans.iter_mut().for_each(|loan| loan.is_shared = true);
        if let Some(forking) = self.forking.take() {
            let opens: Vec<_> = forking.connections.into_iter().map(|it| it.0).collect();
            if let Some(host) = self.host() {
                opens.iter().for_each(|open| host.hold(open));
            }
            let opens = opens.into_iter().map(Some).collect();
            let channel = forking.ours;
            self.lend(Lent { channel, opens });
        }
        // A thread that waits in accept or poll looks again, so that new peers still come to it.
        self.bells.ring();
    }

    /// Has a thread wait for claims.
    fn lend(&mut self, lent: Lent) {
        self.lending.push(lent.channel.number());
        if let Some(start) = LEND.get() {
            start(lent);
        }
    }

    /// Nobody waits for claims on a channel any more. It is closed with the lock, so that no child has it without knowing.
    pub fn forget_lending(&mut self, channel: Channel) {
        self.lending.retain(|other| *other != channel.number());
    }

    /// This process is about to end: others may claim back what they still have numbers of.
    pub fn return_lent(&self) {
        for channel in &self.lending {
            Channel::say_return(*channel);
        }
    }

    /// This process is at its end: what others have stays theirs. Threads outlive the lock by a moment, and would claim
    /// connections of which nobody would tell the peers that they are closed.
    pub fn renounce_loans(&mut self) {
        self.loans.clear();
        numbers::disinherit();
    }

    /// Whether others may claim what we have.
    pub fn is_lending(&self) -> bool {
        !self.lending.is_empty()
    }

    /// In a child: the link's queue and its packet memory are the parent's. The socket is closed, so that the queue is
    /// free when the parent ends; the memory is left as it is.
    pub fn become_a_child(&mut self) {
        self.moving.clear();
        for channel in std::mem::take(&mut self.lending) {
            numbers::set(channel, Whose::Kernel);
            close_own(channel);
        }
        match std::mem::replace(&mut self.hosting, Hosting::Refused) {
            Hosting::Open(host) => self.leave_to_parent(host),
            // The child is who opens the first socket, as a daemon does.
            hosting @ (Hosting::Unopened | Hosting::Moved) => self.hosting = hosting,
            Hosting::Refused | Hosting::Inherited => {}
        }
        self.inherit_loans();
        numbers::inherit_by(claim);
        for number in self.unconnected.iter().flat_map(|socket| &socket.numbers) {
            numbers::set(number.cast_signed(), Whose::Inherited);
        }
        if !self.unconnected.is_empty() || !self.loans.is_empty() {
            self.hosting = Hosting::Inherited;
        }
        self.bells = Bells::new();
    }

    fn leave_to_parent(&mut self, mut host: Box<Host<Port>>) {
        self.backlogs.iter_mut().for_each(|it| it.close(&host));
        if config::get().is_some_and(|config| !config.is_card()) {
            self.unconnected.extend(host.unconnected());
        }
        numbers::become_a_child();
        seen::stop();
        self.control = None;
        close_own(std::mem::replace(&mut self.keeper_bell, -1));
        let (port, station) = host.into_parts();
        std::mem::forget(station);
        drop(port);
    }

    fn inherit_loans(&mut self) {
        for loan in &mut self.loans {
            loan.is_shared = true;
            loan.channel.note_again();
        }
        self.backlogs.retain(Backlog::has_numbers);
        self.backlogs.iter().for_each(Backlog::note_again);
        if let Some(forking) = self.forking.take() {
            let channel = Arc::new(forking.childs);
            channel.note_again();
            let numbered = forking.connections.into_iter().map(|it| it.1);
            let loans = (0..)
                .zip(numbered)
                .map(|(place, numbers)| Loan::new(channel.clone(), place, numbers));
            self.add_loans(loans);
        }
    }

    /// Something of another process's is ours if we use it; of a listener that we open ourselves, who waits there.
    pub(super) fn add_loans(&mut self, loans: impl Iterator<Item = Loan>) {
        for loan in loans {
            let mut numbers = self.unconnected.iter().flat_map(|it| &it.numbers);
            let is_listeners = numbers.any(|it| loan.numbers.contains(it));
            match is_listeners {
                true => self.backlogs.push(Backlog::new(loan)),
                false => self.loans.push(loan),
            }
        }
    }

    /// A number names nothing of ours any more, whatever it is now.
    fn release(&mut self, number: c_int) {
        match numbers::seen(number) {
            Whose::Socket | Whose::Set => {
                if let Some(host) = self.host() {
                    host.close(number.cast_unsigned());
                }
                if ring_hooks::note_closed(number) {
                    self.bells.ring();
                }
            }
            Whose::Inherited => self.renounce(number),
            Whose::Parent => {}
            Whose::Kernel | Whose::Library | Whose::LogFile | Whose::Ring => return,
        }
        numbers::set(number, Whose::Kernel);
    }

    /// A number that nobody has used yet is none of the child's; one of a connection that stands still is closed.
    fn renounce(&mut self, number: c_int) {
        for socket in &mut self.unconnected {
            socket.numbers.retain(|other| other.cast_signed() != number);
        }
        self.unconnected.retain(|socket| !socket.numbers.is_empty());
        self.renounce_backlog(number);
        if self.is_moving(number) {
            if let Some(host) = self.host() {
                host.close(number.cast_unsigned());
            }
            return;
        }
        let Some(at) = self.loans.iter().position(|loan| loan.has(number)) else {
            return;
        };
        self.loans[at]
            .numbers
            .retain(|other| other.cast_signed() != number);
        if self.loans[at].numbers.is_empty() {
            let loan = self.loans.swap_remove(at);
            if !loan.is_shared {
                let message = Message {
                    kind: Kind::Release,
                    place: loan.place,
                    value: 0,
                };
                // Who has it may be gone.
                loan.channel.say(message, None).ok();
            }
        }
    }

    /// The host of a child, opened now if it was not yet. For connections it is waited until a queue is free: others' are
    /// over some time.
    pub(super) fn own_host(&mut self, patience: Duration) -> Option<&mut Host<Port>> {
        if let (Hosting::Inherited, Some(config)) = (&self.hosting, config::get()) {
            self.is_childs = true;
            let config = config::further(config);
            let end = Time::now() + patience;
            self.hosting = loop {
                match open(&config) {
                    Ok(host) => break Hosting::Open(host),
                    Err(error) if is_busy(&error) && Time::now() < end => thread::sleep(QUEUE_LOOK),
                    Err(error) => {
                        let link = &config.link;
                        self.complain(&format!("{link}: {error}"));
                        break Hosting::Refused;
                    }
                }
            };
            self.start_threads();
        }
        self.host()
    }

    /// Says once why what the parent has cannot be used here.
    pub(super) fn complain(&mut self, why: &str) {
        if !std::mem::replace(&mut self.has_complained, true) {
            eprintln!("libsietch: the parent's sockets cannot be used here: {why}.");
        }
    }

    /// A number is used that is another process's.
    fn take_over(&mut self, number: c_int) {
        if is_handed_over(number) {
            self.renounce(number);
            return numbers::set(number, Whose::Kernel);
        }
        let is_it = |socket: &UnconnectedSocket| socket.numbers.contains(&number.cast_unsigned());
        if self.unconnected.iter().any(is_it) {
            self.open_again(number);
        } else if let Some(at) = self.loans.iter().position(|loan| loan.has(number)) {
            let loan = self.loans.swap_remove(at);
            self.claim(&loan);
        } else {
            numbers::set(number, Whose::Parent);
            let card = config::get().filter(|config| config.is_card());
            let why = match card {
                Some(config) => format!("{} has one queue", config.link),
                None => "this one has a peer and cannot be moved".into(),
            };
            self.complain(&why);
        }
    }

    fn claim(&mut self, loan: &Loan) {
        let claimed = self.claim_into_host(loan);
        self.tell_news();
        match claimed {
            Ok(lent) => {
                loan.set(Whose::Socket);
                if let Some(lent) = lent {
                    self.lend(lent);
                }
            }
            // Who had it has handed it over to the kernel's stack meanwhile.
            Err(_) if loan.is_handed_over() => loan.set(Whose::Kernel),
            Err(error) => {
                loan.set(Whose::Parent);
                let why = io::Error::from_raw_os_error(error.number());
                self.complain(&format!("a connection: {why}"));
            }
        }
    }

    fn claim_into_host(&mut self, loan: &Loan) -> Result<Option<Lent>> {
        self.own_host(QUEUE_PATIENCE).ok_or(Errno::NETWORK_DOWN)?;
        let queue = self.queue().ok_or(Errno::NETWORK_DOWN)?;
        let host = self.host().ok_or(Errno::NETWORK_DOWN)?;
        let from = (&*loan.channel, loan.place);
        let lent = claiming::claim((host, queue), from, &loan.numbers, now())?;
        let lent = lent.map(|(channel, open)| Lent {
            channel,
            opens: vec![Some(open)],
        });
        // Frames of its may have come first.
        host.turn(now());
        host.flush();
        Ok(lent)
    }

    /// Opens the socket of a number again, and with it all others that were not: peers are told apart by queues,
    /// not by ports. But of several with one name that one only.
    fn open_again(&mut self, number: c_int) {
        let mut unconnected = std::mem::take(&mut self.unconnected);
        let is_asked =
            |socket: &UnconnectedSocket| socket.numbers.contains(&number.cast_unsigned());
        unconnected.sort_by_key(|socket| !is_asked(socket));
        let mut opened: Vec<UnconnectedSocket> = Vec::new();
        let Some(host) = self.own_host(Duration::ZERO) else {
            self.loans.clear();
            self.backlogs.clear();
            return numbers::disinherit();
        };
        let mut left = Vec::new();
        for socket in unconnected {
            if opened.iter().any(|other| other.is_named_as(&socket)) {
                left.push(socket);
                continue;
            }
            let whose = match host.inherit(&socket) {
                Ok(()) => Whose::Socket,
                Err(_) => Whose::Parent,
            };
            let numbers = socket.numbers.iter();
            numbers.for_each(|number| numbers::set(number.cast_signed(), whose));
            opened.push(socket);
        }
        host.share_as_child();
        self.unconnected = left;
        self.open_backlogs();
    }
}

/// How long a child waits for a queue of the link, and how often it looks.
pub(super) const QUEUE_PATIENCE: Duration = Duration::from_secs(10);
const QUEUE_LOOK: Duration = Duration::from_millis(2);
/// How often it is looked whether a connection that stands still goes on.
const MOVE_LOOK: Duration = Duration::from_millis(1);

/// Whether all queues have somebody.
fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}

/// A number that was inherited is used: it is ours from now on, or another's alone.
pub(super) fn claim(number: c_int) {
    loop {
        let mut state = lock();
        if numbers::seen(number) != Whose::Inherited {
            return;
        }
        if !state.is_moving(number) {
            return state.take_over(number);
        }
        drop(state);
        // As long as the other may take.
        thread::sleep(MOVE_LOOK);
    }
}

/// Who has a connection is about to end, and has said so by its channel: it is claimed if we have numbers of it still.
pub fn claim_back(channel: &Arc<Channel>) {
    let mut state = lock();
    let is_it = |loan: &Loan| Arc::ptr_eq(&loan.channel, channel);
    if let Some(at) = state.loans.iter().position(is_it) {
        let loan = state.loans.swap_remove(at);
        state.claim(&loan);
    }
}

/// The program is about to lose rights that a queue needs.
pub fn claim_while_we_may() {
    let mut state = lock();
    let Hosting::Inherited = state.hosting else {
        return;
    };
    match state.unconnected.iter().flat_map(|it| &it.numbers).next() {
        Some(number) => {
            let number = number.cast_signed();
            state.open_again(number);
        }
        // A connection can be claimed later.
        None => drop(state.own_host(QUEUE_PATIENCE).map(|_| ())),
    }
}
