//! Sends back whatever comes to port 7, datagrams and streams, by io_uring as programs on the `tokio-uring` crate use it.
//!
//! The crate enters its ring by the C library's `syscall`, never waits there, and has Tokio's epoll set tell of
//! completions by the ring's number. A datagram has a receive of its own under way, a connection one for its bytes; streams
//! are closed by the ring, too.

#![forbid(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use tokio_uring::net::{TcpListener, TcpStream, UdpSocket};

const ECHO: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 7);
/// Receives of datagrams that are under way.
const RECEIVES: usize = 64;
const BUFFER_BYTES: usize = 4096;

fn main() -> io::Result<()> {
    tokio_uring::start(async {
        let socket = Rc::new(UdpSocket::bind(ECHO).await?);
        let listener = TcpListener::bind(ECHO)?;
        for _ in 0..RECEIVES {
            tokio_uring::spawn(serve_datagrams(socket.clone()));
        }
        println!("serving");
        loop {
            let (stream, _) = listener.accept().await?;
            tokio_uring::spawn(serve(stream));
        }
    })
}

async fn serve_datagrams(socket: Rc<UdpSocket>) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        let (received, heard) = socket.recv_from(buffer).await;
        let (_, from) = received?;
        let (sent, back) = socket.send_to(heard, from).await;
        sent?;
        buffer = back;
        buffer.clear();
    }
}

/// Until the peer closes; then nobody asks how it went.
async fn serve(stream: TcpStream) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        let (received, heard) = stream.read(buffer).await;
        if received? == 0 {
            return Ok(());
        }
        let (sent, back) = stream.write_all(heard).await;
        sent?;
        buffer = back;
        buffer.clear();
    }
}
