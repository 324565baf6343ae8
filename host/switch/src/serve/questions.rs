//! Questions for names that the network does not answer by itself: whom they go to, and how answers come back.

use std::io;
use std::time::Instant;

use super::Switch;
use super::frames::socket_of;
use crate::dns_tcp;
use crate::fabric::{Client, Port, Resolved, Unanswered};
use crate::names::{DATAGRAM_BYTES_MAX, Outcome, Question};
use crate::resolver;
use crate::socket::NotQueued;

/// Questions of one connection until other sockets have their turn.
const QUESTIONS_PER_TURN: usize = 8;

impl Switch {
    pub(super) fn ask_others(&mut self, asked: Unanswered<'_>, now: Instant) {
        match asked.has_others {
            true => self.ask_peers(asked, now),
            false => self.ask(asked.client, asked.message, now),
        }
    }

    pub(super) fn take_segment(&mut self, frame: &[u8], now: Instant) {
        if self.dns_tcp.is_none() {
            self.dns_tcp = dns_tcp::Server::new(self.fabric.network(), now).ok();
        }
        match &mut self.dns_tcp {
            Some(server) => server.receive(frame, now),
            None => self.fabric.drops.resolver += 1,
        }
    }

    /// Lets our own end of TCP do what is due, answers what it was asked, and sends what it has.
    pub(super) fn serve_dns_tcp(&mut self, now: Instant) {
        // A connection's next question may be there when its last one is answered.
        for _ in 0..QUESTIONS_PER_TURN {
            let fabric = &self.fabric;
            let member_of = |address| fabric.member_with(address).map(|(id, _)| *id);
            let server = self.dns_tcp.as_mut();
            let asked = server.map(|server| server.turn(now, member_of));
            let asked = asked.unwrap_or_default();
            if asked.is_empty() {
                break;
            }
            asked.iter().for_each(|asked| self.resolve(asked, now));
        }
        self.send_dns_tcp();
    }

    fn resolve(&mut self, asked: &dns_tcp::Asked, now: Instant) {
        let client = Client {
            member: asked.member,
            port: dns_tcp::DNS_PORT,
            stream: Some(asked.stream),
        };
        match self.fabric.question_by_stream(client, &asked.message) {
            Some(Resolved::Own(answer)) => self.bring(client, &answer),
            Some(Resolved::ByOthers(unanswered)) => self.ask_others(unanswered, now),
            // The connection ends.
            None => self.bring(client, &[]),
        }
    }

    fn send_dns_tcp(&mut self) {
        let fabric = &self.fabric;
        let server = self.dns_tcp.as_mut();
        let frames = server.map(|server| server.frames(|address| fabric.station_of(address)));
        for (station, frame) in frames.unwrap_or_default() {
            let mut members = self.fabric.members().iter();
            let to = members.find(|(_, member)| member.lease.mac == station.0);
            let to = to.map(|(id, _)| Port::Card(*id));
            let socket = to.and_then(|to| socket_of(&mut self.connections, to));
            // What is lost is sent again.
            match socket.map(|socket| socket.queue(&frame)) {
                Some(Ok(())) => {}
                Some(Err(NotQueued::Full)) => self.fabric.drops.queue_full += 1,
                Some(Err(NotQueued::NotConnected)) | None => self.fabric.drops.not_connected += 1,
            }
        }
    }

    pub(super) fn bring_called_answers(&mut self, now: Instant) {
        for (client, answer) in self.calls.hear(now) {
            if answer.is_none() {
                self.fabric.drops.resolver += 1;
            }
            self.bring(client, &answer.unwrap_or_default());
        }
    }

    fn ask_peers(&mut self, asked: Unanswered<'_>, now: Instant) {
        let Unanswered {
            client, message, ..
        } = asked;
        let own = self.connections.get(&client.member);
        let others = own.map_or(&[][..], |own| &own.others);
        let name = Question::parse(message).map(|question| question.name);
        let name = name.unwrap_or_default();
        if self.peers.ask(others, client, message, &name, now).is_err() {
            self.fabric.drops.resolver += 1;
            // By datagrams who asked asks again; a connection waits for its answer, and ends.
            if client.stream.is_some() {
                self.bring(client, &[]);
            }
        }
    }

    pub(super) fn bring_peers_answers(&mut self, now: Instant) {
        for heard in self.peers.hear(now) {
            let question = Question::parse(&heard.message);
            let answer = question.and_then(|question| {
                self.fabric
                    .answer_of_others(heard.client, &question, &heard.found)
            });
            match answer {
                Some(answer) => self.bring(heard.client, &answer),
                None => self.ask(heard.client, &heard.message, now),
            }
        }
    }

    fn ask(&mut self, client: Client, message: &[u8], now: Instant) {
        let server = resolver::of_host().ok_or(io::ErrorKind::NotFound.into());
        let asked = server.and_then(|server| match client.stream {
            Some(_) => self.calls.ask(server, client, message, now),
            None => self.resolver.ask(server, client, message, now),
        });
        if asked.is_err() {
            self.fabric.drops.resolver += 1;
            let question = Question::parse(message);
            let answer =
                question.map(|question| question.answer(Outcome::Failed, &[], DATAGRAM_BYTES_MAX));
            self.bring(client, &answer.unwrap_or_default());
        }
    }

    pub(super) fn bring_answers(&mut self) {
        for _ in 0..resolver::WAITING_MAX {
            let Some((client, answer)) = self.resolver.answer() else {
                return;
            };
            self.bring(client, &answer);
        }
    }

    fn bring(&mut self, client: Client, answer: &[u8]) {
        if let Some(stream) = client.stream {
            if let Some(server) = &mut self.dns_tcp {
                server.answer(stream, answer, Instant::now());
            }
            return;
        }
        let frame = self.fabric.answer_frame(client, answer);
        let socket = socket_of(&mut self.connections, Port::Card(client.member));
        let queued = frame
            .zip(socket)
            .map(|(frame, socket)| socket.queue(&frame));
        if !matches!(queued, Some(Ok(()))) {
            self.fabric.drops.resolver += 1;
        }
    }
}
