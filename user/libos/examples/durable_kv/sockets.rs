//! Clients by the kernel's sockets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use crate::client::Client;
use crate::store::Store;

const READ_BYTES: usize = 64 * 1024;

/// Until the log or the listener fails.
pub fn serve(mut store: Store, listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut peers: Vec<Peer> = Vec::new();
    let mut bytes = vec![0; READ_BYTES];
    let mut goes_on = false;
    loop {
        // What was executed since the disk was told waits for nobody who would ring.
        if !goes_on && wait(listener, &mut peers, &mut store)? {
            accept(listener, &mut peers)?;
        }
        peers.retain_mut(|peer| peer.receive(&mut store, &mut bytes).is_ok());
        // Who all wait for the disk ask for nothing meanwhile.
        match peers.iter().all(|peer| peer.client.waits_for_disk()) {
            true => store.turn_and_wait()?,
            false => store.turn()?,
        }
        let durable = store.durable();
        goes_on = false;
        peers.retain_mut(|peer| {
            let answered = peer.answer(&mut store, durable);
            goes_on |= answered.as_ref().is_ok_and(|goes_on| *goes_on);
            answered.is_ok()
        });
    }
}

/// Until somebody asks, or something has become durable: notes who has asked. Whether somebody wants to be a client.
fn wait(listener: &TcpListener, peers: &mut [Peer], store: &mut Store) -> io::Result<bool> {
    if !store.arm() {
        return Ok(false);
    }
    let doorbell = store.doorbell();
    let mut files = vec![
        PollFd::new(&doorbell, PollFlags::IN),
        PollFd::new(listener, PollFlags::IN),
    ];
    for peer in peers.iter() {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, peer.client.has_room());
        wanted.set(PollFlags::OUT, !peer.client.unsent.is_empty());
        files.push(PollFd::from_borrowed_fd(peer.stream.as_fd(), wanted));
    }
    match poll(&mut files, None) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let asks = |file: &PollFd<'_>| !(file.revents() - PollFlags::OUT).is_empty();
    let asked: Vec<bool> = files.iter().skip(1).map(asks).collect();
    for (peer, has_asked) in peers.iter_mut().zip(&asked[1..]) {
        peer.has_asked = *has_asked;
    }
    Ok(asked[0])
}

fn accept(listener: &TcpListener, peers: &mut Vec<Peer>) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                peers.push(Peer {
                    stream,
                    has_asked: true,
                    client: Client::default(),
                });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A connection.
struct Peer {
    stream: TcpStream,
    /// Something can be read.
    has_asked: bool,
    client: Client,
}

impl Peer {
    /// Executes what has come. An error ends the connection.
    fn receive(&mut self, store: &mut Store, bytes: &mut [u8]) -> io::Result<()> {
        if !self.client.has_room() || !std::mem::take(&mut self.has_asked) {
            return Ok(());
        }
        match self.stream.read(bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.client.receive(store, [&bytes[..count]]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends what may be said; whether more was executed.
    fn answer(&mut self, store: &mut Store, durable: u64) -> io::Result<bool> {
        let mut has_gone_on = false;
        loop {
            has_gone_on |= self.client.answer(store, durable)?;
            self.send()?;
            if !self.client.may_go_on() {
                return Ok(has_gone_on);
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let unsent = &mut self.client.unsent;
        while !unsent.is_empty() {
            match self.stream.write(unsent) {
                Ok(count) => drop(unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
