//! HAProxy in front of a server: large answers pass it whole.

use crate::Test;
use crate::guest::{Setup, write_file};
use crate::http::{self, Connections, HELLO};

/// The tests.
pub const TESTS: &[Test] = &[(
    "HAProxy passes answers of eight megabytes to many clients whole",
    large_answers,
)];

const CONFIGURATION: &str = "\
global
    nbthread 2
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend front
    bind :8080
    default_backend site
backend site
    server web 127.0.0.1:80
";
const SCRIPT: &str = "busybox httpd -p 80 -h /site; exec haproxy -f /haproxy.cfg";
const ANSWER_BYTES: usize = 8 << 20;
/// Stands at the very end of the answer.
const LAST_WORDS: &str = "the last grain";

fn large_answers(setup: &Setup) -> Result<(), String> {
    let mut page = "sand ".repeat(ANSWER_BYTES / 5);
    page.push_str(LAST_WORDS);
    let page = write_file("large-site/index.html", page)?;
    let small = write_file("large-site/small.html", LAST_WORDS)?;
    let configuration = write_file("haproxy.cfg", CONFIGURATION)?;
    let additions = [
        format!("{page}:/site/index.html"),
        format!("{small}:/site/small.html"),
        format!("{configuration}:/haproxy.cfg"),
    ];
    let args = [
        "--memory",
        "512M",
        "--add",
        "/usr/sbin/haproxy:/usr/sbin/haproxy",
        "--add",
        &additions[0],
        "--add",
        &additions[1],
        "--add",
        &additions[2],
        "busybox",
        "sh",
        "-c",
        SCRIPT,
    ];
    let (guest, address) = setup.serve(8080, &args)?;
    guest.expect_answer(address, HELLO)?;
    http::load(address, "/index.html", LAST_WORDS, 4, 2, Connections::Fresh)
        .and_then(|()| http::load(address, "/small.html", LAST_WORDS, 8, 50, Connections::Kept))
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
