//! One stack of several that serve a machine: which connections are its own.
//!
//! The shell leads each frame to the stack that owns its connection, by a rule that is a
//! function of both ends alone. A stack that chooses a port for a connection chooses one
//! by which the rule leads back to itself.

use alloc::sync::Arc;

use crate::addr::{Endpoint, FourTuple, SocketId};
use crate::config::Config;
use crate::error::Error;
use crate::journal::EventNumbers;
use crate::stack::Stack;
use crate::totals::Totals;

/// A stack's place among several.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The stack's own number.
    pub number: u16,
    /// The number of the stack that owns the connection between our end and the peer's.
    pub owner_of: fn(local: Endpoint, remote: Endpoint) -> u16,
}

impl Config {
    /// The limits of one of so many stacks that serve a machine together, where these are
    /// those of the machine: rates are parted. What is counted together ([`Totals`]),
    /// and limits of a socket, a listener or a buffer stay as they are.
    pub fn part(self, stacks: u16) -> Self {
        let rate = |whole: u32| whole.div_ceil(stacks.max(1).into());
        Self {
            challenges_per_second: rate(self.challenges_per_second),
            icmp_errors_per_second: rate(self.icmp_errors_per_second),
            ..self
        }
    }
}

impl Share {
    /// Whether frames of this connection come to this stack.
    pub(crate) fn owns(&self, tuple: &FourTuple) -> bool {
        (self.owner_of)(tuple.local, tuple.remote) == self.number
    }
}

impl Stack {
    /// From now on this stack is one of several.
    pub fn set_share(&mut self, share: Share) {
        self.net.share = Some(share);
    }

    /// From now on the events of this stack's journal are numbered by `next`, as are those of
    /// others.
    pub fn number_events_by(&mut self, next: Arc<EventNumbers>) {
        self.net.journal.number_by(next);
    }

    /// From now on this stack counts in `totals`, as do the others that serve the host.
    pub fn share_totals(&mut self, totals: &Totals) {
        self.net.time_wait.tally.join(&totals.time_waits);
        self.net.orphans.join(&totals.orphans);
        self.net.grown.join(&totals.grown);
    }

    /// Gives a datagram socket the ends that `connect` gave its like in another stack, which
    /// may have ways that this one lacks.
    pub fn follow_datagram(
        &mut self,
        id: SocketId,
        local: Endpoint,
        peer: Option<Endpoint>,
    ) -> Result<(), Error> {
        let socket = self.sockets.udp_mut(id)?;
        (socket.local, socket.peer) = (local, peer);
        self.rename_datagram(id)
    }

    /// Takes a datagram socket's name away, which its like in another stack could not get; it is
    /// `nameless` again, as it was before.
    pub fn unname_datagram(&mut self, id: SocketId, nameless: Endpoint) -> Result<(), Error> {
        let socket = self.sockets.udp_mut(id)?;
        let port = core::mem::replace(&mut socket.local, nameless).port;
        socket.bound = nameless.addr;
        self.net.demux.udp.unbind(port, id.index);
        Ok(())
    }
}

impl SocketId {
    /// The id as a number: the generation above, the index in the lower 32 bits.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The inverse of [`to_bits`](Self::to_bits). A number that is no id is as good as a
    /// stale one.
    pub fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Instant;
    use mbuf::{Mbuf, TxFrame};

    use super::*;
    use crate::{Env, Events, Transport};

    /// A world in which nothing can be sent.
    struct Silence;

    impl Env for Silence {
        fn now(&self) -> Instant {
            Instant::START
        }
        fn random(&mut self) -> u64 {
            7
        }
        fn alloc(&mut self) -> Option<Mbuf> {
            None
        }
        fn transmit(&mut self, _: TxFrame) {}
        fn wake(&mut self, _: SocketId, _: Events) {}
    }

    fn parity(local: Endpoint, remote: Endpoint) -> u16 {
        (local.port ^ remote.port) & 1
    }

    fn local_port(number: u16) -> u16 {
        let mut stack = Stack::new(Config::default(), [1, 2]).unwrap();
        stack.set_share(Share {
            number,
            owner_of: parity,
        });
        let peer = Endpoint::v4([127, 0, 0, 1].into(), 80);
        let id = stack.open(Transport::Tcp).unwrap();
        stack.connect(&mut Silence, id, peer).unwrap();
        stack.local(id).unwrap().port
    }

    #[test]
    fn a_stack_of_several_chooses_ports_that_lead_back_to_itself() {
        assert_eq!(local_port(0) & 1, 0);
        assert_eq!(local_port(1) & 1, 1);
    }

    #[test]
    fn stacks_together_answer_as_often_as_one_alone() {
        let whole = Config::default();
        let part = whole.part(4);
        assert_eq!(part.challenges_per_second * 4, whole.challenges_per_second);
        assert_eq!(part.time_waits_max, whole.time_waits_max, "of all together");
        assert_eq!(part.half_open_max, whole.half_open_max, "of each listener");
        assert_eq!(whole.part(1), whole);
    }

    #[test]
    fn a_datagram_socket_gets_a_port_that_fits_if_there_is_one_near() {
        let mut stack = Stack::new(Config::default(), [1, 2]).unwrap();
        let id = stack.open(Transport::Udp).unwrap();
        for wanted in 0..16 {
            let port = stack.choose_datagram_port(id, |port| port % 16 == wanted);
            assert_eq!(port.map(|port| port % 16), Some(wanted));
        }
        assert!(stack.choose_datagram_port(id, |_| false).is_some());
    }

    #[test]
    fn a_datagram_socket_that_lost_its_name_may_be_named_again_and_so_may_others() {
        let mut stack = Stack::new(Config::default(), [1, 2]).unwrap();
        let name = Endpoint::v4([127, 0, 0, 1].into(), 5353);
        let [first, second] = [(); 2].map(|()| stack.open(Transport::Udp).unwrap());
        let nameless = stack.local(first).unwrap();
        for id in [first, second, first] {
            assert_eq!(stack.bind(id, name), Ok(()));
            assert_eq!(stack.unname_datagram(id, nameless), Ok(()));
            assert_eq!(stack.local(id), Ok(nameless));
        }
    }

    #[test]
    fn an_id_survives_being_a_number() {
        let mut stack = Stack::new(Config::default(), [1, 2]).unwrap();
        let id = stack.open(Transport::Udp).unwrap();
        assert_eq!(SocketId::from_bits(id.to_bits()), id);
    }
}
