use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::*;

#[test]
fn only_this_host_is_asked_without_tls() {
    for host in [
        "127.0.0.1:5000",
        "localhost",
        "localhost:5000",
        "[::1]:5000",
    ] {
        assert!(is_loopback(host), "{host}");
    }
    for host in [
        "example.com",
        "localhost.example.com:5000",
        "10.0.0.1:5000",
        "[fe80::1]:5000",
    ] {
        assert!(!is_loopback(host), "{host}");
    }
}

/// A registry that sends its first bytes and then nothing, without an end; how it is called.
fn silent(first: &'static str) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut kept: Vec<TcpStream> = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(first.as_bytes());
            kept.push(stream);
        }
    });
    Remote {
        host,
        repository: "a".into(),
        version: "1".into(),
    }
}

#[test]
fn a_registry_that_says_nothing_more_is_not_waited_for_without_end() {
    let patience = Duration::from_millis(300);
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    for first in ["", "HTTP/1.1 200", head] {
        let error = with_patience(&silent(first), patience).top().unwrap_err();
        assert!(error.is_of_registry(), "{first:?}: {error}");
        assert!(error.to_string().contains("timeout"), "{error}");
    }
}
