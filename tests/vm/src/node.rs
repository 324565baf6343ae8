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
    let (guest, address) = setup.serve(8080, &["-m", "768M", "/usr/bin/node", "-e", SERVER])?;
    guest.expect_answer(address, HELLO)?;
    http::load(address, "/", "hello from Node", 8, 100, Connections::Kept)
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
