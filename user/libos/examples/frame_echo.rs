//! Sends each datagram for port 7 back in the frame in which it came: no stack, no socket, one look at the rings for
//! each batch. What that costs is the price of the link, of which no stack has any less:
//!
//!     frame_echo vnic0 10.0.2.61/24
//!
//! Other frames, a peer's question for our address among them, are the stack's.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use base::Instant;
use mbuf::{Chain, RxFrame, TxFrame};
use rt::{AnyIo, FrameIo};
use sietch_io::{BATCH_FRAMES, Doorbell, Queue, QueueConfig, Station};

const ECHO: [u8; 2] = 7_u16.to_be_bytes();
/// After Ethernet's header: no VLAN tag, IPv4, a header of 20 bytes; UDP; its checksum.
const TYPE_AND_VERSION: [u8; 3] = [0x08, 0x00, 0x45];
const TYPE: usize = 12;
const PROTOCOL: usize = 23;
const UDP: u8 = 17;
const CHECKSUM: std::ops::Range<usize> = 40..42;
const HEADERS: usize = 42;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let [_, link, address] = arguments.as_slice() else {
        eprintln!("frame_echo LINK ADDRESS/PREFIX");
        return ExitCode::from(2);
    };
    match serve(link, address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("frame_echo: {link}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Until the link is gone.
fn serve(link: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let queue = Queue::open(&QueueConfig::new(link, address.parse()?))?;
    let (doorbell, mut station) = queue.into_parts();
    println!("serving");
    io::stdout().flush()?;
    let mut frames = Vec::with_capacity(BATCH_FRAMES);
    loop {
        let io = station.io();
        io.begin(Instant::from_nanos(rt::monotonic_nanos()));
        io.receive(BATCH_FRAMES, &mut frames);
        io.end();
        if frames.is_empty() && !io.arm() {
            doorbell.wait(None)?;
        }
        for frame in frames.drain(..) {
            answer(&mut station, frame);
        }
        send(&doorbell, station.io())?;
    }
}

fn answer(station: &mut Station<AnyIo>, mut frame: RxFrame) {
    if frame.chain.as_single_mut().is_some_and(turn_round) {
        let chain = frame.chain;
        station.io().send(TxFrame {
            chain,
            ..TxFrame::default()
        });
    } else {
        station.hear(&bytes_of(&frame.chain));
    }
}

fn bytes_of(chain: &Chain) -> Vec<u8> {
    chain.slices().flatten().copied().collect()
}

/// Makes the frame its own answer, if it is a datagram for us.
fn turn_round(frame: &mut [u8]) -> bool {
    let is_echo = frame.len() >= HEADERS
        && frame[TYPE..].starts_with(&TYPE_AND_VERSION)
        && frame[PROTOCOL] == UDP
        && frame[36..38] == ECHO;
    if is_echo {
        exchange::<6>(frame, 0, 6);
        exchange::<4>(frame, 26, 30);
        exchange::<2>(frame, 34, 36);
        // There may be no checksum yet, where the card is to make it; none is allowed (RFC 768).
        frame[CHECKSUM].fill(0);
    }
    is_echo
}

fn exchange<const N: usize>(frame: &mut [u8], one: usize, other: usize) {
    for offset in 0..N {
        frame.swap(one + offset, other + offset);
    }
}

fn send(doorbell: &Doorbell, io: &mut AnyIo) -> io::Result<()> {
    if io.flush() {
        doorbell.kick()?;
    }
    io.reclaim();
    Ok(())
}
