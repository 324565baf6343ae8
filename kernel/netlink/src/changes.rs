//! What listeners hear: the differences between what was and what is.
//!
//! As long as somebody is in a group of [`Protocol::Route`], we keep the plan of that stack which
//! all its listeners know. [`tell_all`] compares it with the present one and tells what is gone and what
//! is new. So whoever changed something, a command, DHCP or a neighbour, is not asked to say
//! so, and nothing is told twice.
//!
//! Lock order: [`KNOWN`] before a shard and before the registry.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use mach::sync::Spin;
use netlink::Emit;

use super::objects::{address, link, neighbour, route};
use super::protocol::Protocol;
use super::socket::registry;
use super::{answer, dump};
use net::plan::{LinkState, Plan, plan};
use net::{self, NetStack};

/// `RTNLGRP_*`.
const LINKS: u32 = 1;
const NEIGHBOURS: u32 = 3;
const V4_ADDRESSES: u32 = 5;
const V4_ROUTES: u32 = 7;
const V6_ADDRESSES: u32 = 9;
const V6_ROUTES: u32 = 11;

/// What the listeners of a stack know.
struct Known {
    stack: Weak<NetStack>,
    plan: Plan,
}

/// Of each stack, while it has listeners: who looks for changes looks at all of them.
static KNOWN: Spin<Vec<Known>> = Spin::new(Vec::new());

/// Runs `join`, which may change who listens to a stack; who joins hears of changes from now on.
pub(super) fn listen(stack: &Arc<NetStack>, join: impl FnOnce()) {
    let mut known = KNOWN.lock();
    tell_all(&mut known);
    join();
    let is_known = known
        .iter()
        .any(|one| one.stack.as_ptr() == Arc::as_ptr(stack));
    if stack.has_change_listeners() && !is_known {
        known.push(Known {
            stack: Arc::downgrade(stack),
            plan: plan(stack),
        });
    }
}

/// Has polling look for changes; once at boot.
pub fn init() {
    net::on_changes(|| tell_all(&mut KNOWN.lock()));
}

/// Tells those of all stacks, and forgets stacks to which nobody listens any more.
fn tell_all(known: &mut Vec<Known>) {
    known.retain_mut(|one| {
        let stack = one
            .stack
            .upgrade()
            .filter(|stack| stack.has_change_listeners());
        stack.map(|stack| tell(&stack, &mut one.plan)).is_some()
    });
}

fn tell(stack: &NetStack, before: &mut Plan) {
    let now = plan(stack);
    if *before == now {
        return;
    }
    dump::note_change();
    tell_links(stack, &before.links, &now.links);
    tell_list(&before.routes, &now.routes, |one, verb| {
        let group = if one.destination.is_ipv4() {
            V4_ROUTES
        } else {
            V6_ROUTES
        };
        publish(stack, group, &route::message(one), verb);
    });
    tell_list(&before.addresses, &now.addresses, |one, verb| {
        let group = if one.ip.is_ipv4() {
            V4_ADDRESSES
        } else {
            V6_ADDRESSES
        };
        publish(stack, group, &address::message(one), verb);
    });
    tell_list(&before.neighbours, &now.neighbours, |one, verb| {
        publish(stack, NEIGHBOURS, &neighbour::message(one), verb);
    });
    *before = now;
}

/// What became of an object: the difference to the type of a message about a new one.
#[derive(Clone, Copy)]
enum Change {
    New = 0,
    Gone = 1,
}

/// A link that changed is told anew; gone is only what has no number any more.
fn tell_links(stack: &NetStack, before: &[LinkState], now: &[LinkState]) {
    let is_left = |one: &&LinkState| {
        let mut left = now.iter();
        left.any(|left| left.interface.number == one.interface.number)
    };
    for gone in before.iter().filter(|one| !is_left(one)) {
        publish(
            stack,
            LINKS,
            &link::message(stack, &gone.interface),
            Change::Gone,
        );
    }
    for new in now.iter().filter(|one| !before.contains(one)) {
        publish(
            stack,
            LINKS,
            &link::message(stack, &new.interface),
            Change::New,
        );
    }
}

fn tell_list<T: PartialEq>(before: &[T], now: &[T], mut told: impl FnMut(&T, Change)) {
    let gone = before.iter().filter(|one| !now.contains(one));
    gone.for_each(|one| told(one, Change::Gone));
    let new = now.iter().filter(|one| !before.contains(one));
    new.for_each(|one| told(one, Change::New));
}

/// A message about an object that came or went.
struct News<'a, T>(&'a T, Change);

impl<T: Emit> Emit for News<'_, T> {
    fn kind(&self) -> u16 {
        self.0.kind() + self.1 as u16
    }

    fn emit(&self, to: &mut netlink::Body<'_>) {
        self.0.emit(to);
    }
}

fn publish(stack: &NetStack, group: u32, object: &impl Emit, fate: Change) {
    let bytes: Vec<u8> = match answer::object(&News(object, fate), 0, 0) {
        Ok(bytes) => bytes,
        // Nobody can be told without memory; the next dump says what is so.
        Err(_) => return,
    };
    registry::publish(stack, Protocol::Route, group, &bytes);
}
