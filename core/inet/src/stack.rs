//! One shard: the batch, the timers, and the tables.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Instant;
use mbuf::Chain;
use wire::MacAddr;

use crate::addr::{Cidr, Prefix};
use crate::config::Config;
use crate::context::Context;
use crate::counters::{Count, DropReason, Stats};
use crate::dhcp::Dhcp;
use crate::env::Env;
use crate::error::Error;
use crate::hash::Key;
use crate::journal::Event;
use crate::net::Net;
use crate::options::PathDiscovery;
use crate::port::Port;
use crate::route::{Route, RouteOrigin, Via};
use crate::table::Table;
use crate::tcp::{ConnectionEntry, State};

/// Packets to ourselves that one call delivers; the rest waits for the next, so that two
/// programs that talk over loopback cannot keep the CPU.
const LOOPBACK_BATCH: usize = 256;

/// Timers, and connections in TIME_WAIT, that one call expires, for the same reason: thousands
/// may be due at once, and whoever waits for the stack must get its turn between.
const TIMERS_AT_ONCE: usize = 256;

/// A network stack for one CPU.
pub struct Stack {
    pub(crate) sockets: Table,
    pub(crate) net: Net,
    pub(crate) dhcp: Option<Dhcp>,
}

impl Stack {
    /// A stack with no port and no address but loopback's. `secret` is unpredictable. Its largest parts are on the heap, for a
    /// kernel's stack has little room for values that are made and moved.
    ///
    /// Errors: `NoBuffers`.
    pub fn new(config: Config, secret: [u64; 2]) -> Result<Self, Error> {
        let net = Net::new(config, Key(secret)).ok_or(Error::NoBuffers)?;
        Ok(Self {
            sockets: Table::new(config.sockets_max),
            net,
            dhcp: None,
        })
    }

    /// Gives the stack its NIC.
    pub fn attach(&mut self, port: Port) {
        self.net.port = Some(port);
        self.change_routes();
    }

    /// Takes the NIC away, with all that it had: addresses, routes, neighbours. Connections stay
    /// until they time out.
    pub fn detach<E: Env>(&mut self, env: &mut E) {
        self.stop_ipv6(env);
        self.dhcp = None;
        self.net.port = None;
        (self.net.address, self.net.gateway) = (None, None);
        self.net.routes.remove(|_| true);
        self.change_routes();
    }

    /// Sets or takes away the address of the port.
    pub fn set_address(&mut self, address: Option<Cidr>) {
        self.net.address = address;
        self.change_routes();
    }

    /// Sets or takes away the way to all other networks.
    pub fn set_gateway(&mut self, gateway: Option<Ipv4Addr>) {
        self.net.gateway = gateway;
        self.change_routes();
    }

    /// Rebuilds what follows from port, address and gateway.
    fn change_routes(&mut self) {
        let net = &mut self.net;
        net.change_routes();
        for neighbors in &mut net.neighbors {
            let waiting = neighbors.clear() as u64;
            net.stats.drops.add(DropReason::NeighborUnresolved, waiting);
        }
        let is_v4 = |route: &Route| route.destination.network().is_ipv4();
        net.routes
            .remove(|route| is_v4(route) && route.origin == RouteOrigin::Address);
        let Some(own) = net.address else { return };
        let network = Prefix::new(IpAddr::V4(own.addr()), own.prefix_len());
        let router = net.gateway.map(|router| Via::Router(IpAddr::V4(router)));
        let ways = [
            network.map(|network| (network, Via::OnLink)),
            router.map(|router| (Prefix::ALL_V4, router)),
        ];
        for (destination, via) in ways.into_iter().flatten() {
            let route = Route {
                destination,
                source: None,
                via,
                metric: 0,
                origin: RouteOrigin::Address,
                expires: Instant::NEVER,
            };
            // Two routes always fit beside others' shares.
            net.routes.add(route).ok();
        }
    }

    /// Adds a route, or changes the same one's metric and lifetime.
    ///
    /// Errors: `NoBuffers` if there are too many.
    pub fn add_route(&mut self, route: Route) -> Result<(), Error> {
        let origin = RouteOrigin::Static;
        self.net.routes.add(Route { origin, ..route })?;
        self.net.change_routes();
        Ok(())
    }

    /// Takes routes away that [`add_route`](Self::add_route) has added; says whether there
    /// were any.
    pub fn remove_route(&mut self, is_gone: impl Fn(&Route) -> bool) -> bool {
        let is_static = |route: &Route| route.origin == RouteOrigin::Static;
        let is_changed = self
            .net
            .routes
            .remove(|route| is_static(route) && is_gone(route));
        self.net.change_routes();
        is_changed
    }

    /// All routes, best first.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.net.routes.iter()
    }

    /// Largest packet to `dst`, as far as is known.
    pub fn path_mtu(&self, dst: IpAddr) -> u32 {
        self.net.mtu_told(dst, PathDiscovery::Want)
    }

    /// The NIC.
    pub fn port(&self) -> Option<&Port> {
        self.net.port.as_ref()
    }

    /// The last things that went wrong with TCP, of one kind after the other, the oldest first.
    pub fn journal(&self) -> impl Iterator<Item = &Event> {
        self.net.journal.events()
    }

    /// The address of the port.
    pub fn address(&self) -> Option<Cidr> {
        self.net.address
    }

    /// The way to all other networks.
    pub fn gateway(&self) -> Option<Ipv4Addr> {
        self.net.gateway
    }

    #[inline]
    pub(crate) fn context<'a, E: Env>(&'a mut self, env: &'a mut E) -> Context<'a, E> {
        Context {
            now: env.now(),
            env,
            net: &mut self.net,
        }
    }

    /// Ends a batch of frames ([`receive`](Self::receive)): acknowledges once what has arrived, and sends what that allows.
    pub fn flush<E: Env>(&mut self, env: &mut E) {
        self.send_pending(env);
        self.deliver_loopback(env);
        let frames = self.net.stats.counts.get(Count::FramesIn);
        self.net.unsolicited.end_batch(frames, || env.spent());
    }

    pub(crate) fn send_pending<E: Env>(&mut self, env: &mut E) {
        while let Some(index) = self.net.ack_queue.pop() {
            let mut cx = Context {
                now: env.now(),
                env,
                net: &mut self.net,
            };
            if let Some(tcb) = self.sockets.tcp_at(index) {
                tcb.finish_batch(&mut cx);
                self.settle(env, index);
            }
        }
    }

    /// Sends a packet that starts with its IP header to ourselves.
    pub fn loop_back<E: Env>(&mut self, env: &mut E, packet: Chain) {
        self.net.push_loopback(packet);
        self.deliver_loopback(env);
    }

    /// Delivers packets to ourselves and what they cause, up to a limit.
    pub(crate) fn deliver_loopback<E: Env>(&mut self, env: &mut E) {
        for _ in 0..LOOPBACK_BATCH {
            let Some(packet) = self.net.loopback.pop_front() else {
                return;
            };
            self.net.count(Count::Loopback);
            self.net.count_bytes(Count::BytesLooped, &packet);
            env.looped(&packet);
            self.net.is_looped = true;
            if let Err(reason) = self.loopback_input(env, packet) {
                self.net.drop(reason);
            }
            self.net.is_looped = false;
            if self.net.loopback.is_empty() {
                self.send_pending(env);
            }
        }
    }

    /// Runs what is due, a bounded part of it; returns when to come back, which may be at once.
    pub fn expire<E: Env>(&mut self, env: &mut E) -> Option<Instant> {
        let now = env.now();
        for _ in 0..TIMERS_AT_ONCE {
            let Some(index) = self.net.wheel.pop_due(now) else {
                break;
            };
            let mut cx = Context {
                now,
                env,
                net: &mut self.net,
            };
            if let Some(tcb) = self.sockets.tcp_at(index) {
                if tcb.deadline() <= now {
                    tcb.expire(&mut cx);
                }
                self.settle(env, index);
            }
        }
        self.net.expire_time_waits(now, TIMERS_AT_ONCE);
        if self.net.upkeep_due <= now {
            self.keep_up(env);
        }
        self.expire_dhcp(env);
        self.net.look_at_supply(env);
        self.relieve(env, now);
        self.flush(env);
        self.net.upkeep_due = self.net.next_upkeep();
        self.next_deadline()
    }

    /// Forgets and repeats what is not of one connection: neighbours, addresses, paths ...
    #[cold]
    fn keep_up<E: Env>(&mut self, env: &mut E) {
        self.net.change_upkeep();
        if self.net.paths.expire(env.now()) {
            self.net.change_routes();
        }
        self.expire_reassembly(env);
        let mut cx = self.context(env);
        cx.expire_ipv6();
        cx.expire_neighbors();
        cx.expire_groups();
    }

    /// When [`expire`](Self::expire) has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.net.loopback.is_empty() {
            return Some(Instant::START);
        }
        let due_or_never = |due: Option<Instant>| due.unwrap_or(Instant::NEVER);
        let soonest = due_or_never(self.net.wheel.next_deadline())
            .min(due_or_never(self.net.time_wait.next_deadline()))
            .min(self.net.relief_due())
            .min(self.net.next_upkeep())
            .min(due_or_never(self.dhcp.as_ref().map(Dhcp::deadline)));
        (soonest != Instant::NEVER).then_some(soonest)
    }

    /// What was done and dropped so far.
    pub fn stats(&self) -> &Stats {
        &self.net.stats
    }

    /// Sockets in use, those included that no program holds any more.
    pub fn sockets_used(&self) -> usize {
        self.sockets.used()
    }

    /// Connections that still close after their program let them go.
    pub fn orphans(&self) -> usize {
        self.net.orphans.own()
    }

    /// Connections in TIME_WAIT.
    pub fn time_waits(&self) -> usize {
        self.net.time_wait.len()
    }

    /// IPv4 neighbours with known stations.
    pub fn neighbors(&self) -> impl Iterator<Item = (Ipv4Addr, MacAddr)> + '_ {
        let known = self.net.neighbors[0].iter();
        known.filter_map(|(ip, mac)| match ip {
            IpAddr::V4(ip) => Some((ip, mac)),
            IpAddr::V6(_) => None,
        })
    }

    /// IPv6 neighbours with known stations.
    pub fn neighbors_v6(&self) -> impl Iterator<Item = (Ipv6Addr, MacAddr)> + '_ {
        let known = self.net.neighbors[1].iter();
        known.filter_map(|(ip, mac)| match ip {
            IpAddr::V6(ip) => Some((ip, mac)),
            IpAddr::V4(_) => None,
        })
    }

    /// All TCP sockets, and connections in TIME_WAIT, for tools.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionEntry> + '_ {
        let waiting = self.net.time_wait.iter().map(|tuple| ConnectionEntry {
            socket: None,
            state: State::TimeWait,
            local: tuple.local,
            remote: tuple.remote,
            unread: 0,
            unacked: 0,
        });
        self.sockets
            .iter()
            .filter_map(Self::entry_of)
            .chain(waiting)
    }
}
