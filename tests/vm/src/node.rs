//! Node and its own HTTP server.

use crate::Test;
use crate::guest::Setup;
use crate::http::{self, Connections, HELLO};

/// The tests.
pub const TESTS: &[Test] = &[("Node's http serves under load", http_server)];

const SERVER: &str = "require('http').createServer((request, response) => {
    const body = 'hello from Node ' + Array.from({length: 100}, Math.random).length + '\\n';
    response.setHeader('Content-Length', body.length);
    response.end(body);
}).listen(8080)";

fn http_server(setup: &Setup) -> Result<(), String> {
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    let publish = format!("127.0.0.1:{port}:8080");
    let guest = setup.start(&["-m", "768M", "-p", &publish, "/usr/bin/node", "-e", SERVER])?;
    guest.expect_port(port, HELLO)?;
    http::load(port, "/", "hello from Node", 8, 100, Connections::Kept)
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
