//! WordPress as a newcomer has it: Apache with PHP, and MariaDB, each from an image of its Debian package, by a compose file.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::Test;
use crate::debian_image::{self, BASE, Contents};
use crate::guest::{Setup, sietch, write_file};
use crate::lifecycle::said;
use crate::status::expect_all;
use crate::volume::Folder;

/// The test.
pub const TESTS: &[Test] = &[(
    "WordPress by a compose file is installed, takes a post, and has it after it was ended",
    serves,
)];

/// As images of MariaDB have it: a fresh folder gets a database with a user.
const MARIADB: &str = "#!/bin/sh
set -e
test -d /var/lib/mysql/mysql || mariadb-install-db --datadir=/var/lib/mysql --skip-test-db > /dev/null
cat > /tmp/init.sql <<SQL
CREATE DATABASE IF NOT EXISTS $MARIADB_DATABASE;
CREATE USER IF NOT EXISTS '$MARIADB_USER'@'%' IDENTIFIED BY '$MARIADB_PASSWORD';
GRANT ALL ON $MARIADB_DATABASE.* TO '$MARIADB_USER'@'%';
SQL
exec mariadbd --datadir=/var/lib/mysql --socket=/tmp/s --pid-file=/tmp/p --bind-address=0.0.0.0 \\
    --skip-name-resolve --init-file=/tmp/init.sql
";
const MARIADB_CONFIG: &str = r#"{"User": "mysql", "Entrypoint": ["/entrypoint"], "ExposedPorts": {"3306/tcp": {}},
    "Volumes": {"/var/lib/mysql": {}}, "Healthcheck": {"Test": ["CMD-SHELL",
    "mariadb -h 127.0.0.1 -u $MARIADB_USER -p$MARIADB_PASSWORD -e 'SELECT 1' $MARIADB_DATABASE"],
    "Interval": 5000000000, "Timeout": 60000000000, "Retries": 100}}"#;

const APACHE: &str = "#!/bin/sh
set -e
. /etc/apache2/envvars
mkdir -p /run/lock $APACHE_RUN_DIR
exec apache2 -D FOREGROUND
";
const APACHE_CONFIG: &str = r#"{"Entrypoint": ["/entrypoint"], "ExposedPorts": {"80/tcp": {}},
    "StopSignal": "SIGWINCH"}"#;
const SITE: &str = "<VirtualHost *:80>
DocumentRoot /usr/share/wordpress
<Directory /usr/share/wordpress>
Options FollowSymLinks
Require all granted
</Directory>
</VirtualHost>
";
const SETTINGS: &str = "<?php
define('DB_HOST', getenv('WORDPRESS_DB_HOST'));
define('DB_NAME', getenv('WORDPRESS_DB_NAME'));
define('DB_USER', getenv('WORDPRESS_DB_USER'));
define('DB_PASSWORD', getenv('WORDPRESS_DB_PASSWORD'));
define('WP_CONTENT_DIR', '/var/lib/wordpress/wp-content');
";

const COMPOSE: &str = r#"
services:
  db:
    image: oci:./mariadb
    environment: {MARIADB_DATABASE: blog, MARIADB_USER: author, MARIADB_PASSWORD: secret}
    volumes: ["db:/var/lib/mysql"]
  web:
    image: oci:./wordpress
    ports: ["127.0.0.1:${PORT}:80"]
    environment:
      WORDPRESS_DB_HOST: db
      WORDPRESS_DB_NAME: blog
      WORDPRESS_DB_USER: author
      WORDPRESS_DB_PASSWORD: secret
    depends_on:
      db: {condition: service_healthy}
volumes:
  db: {}
"#;

/// What its page of installation asks for.
const FORM: &str = "weblog_title=Sietch&user_name=author&admin_password=secret&admin_password2=secret&pw_weak=1\
    &admin_email=a%40sietch.test&blog_public=0";
const LOGIN: &str = "log=author&pwd=secret&testcookie=1";
const POST: &str = "title=Water+in+the+desert&content=Each+drop+is+counted.&status=publish";

/// A way out of this namespace, though nobody is at its end: passt wants one.
struct WayOut;

impl WayOut {
    fn new() -> Result<Self, String> {
        let script = "ip tuntap add mode tap away && ip address add 192.0.2.2/24 dev away && \
            ip link set away up && ip route add default via 192.0.2.1";
        said(Command::new("sh").args(["-c", script]), 0).map(|_| Self)
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        // The namespace goes with its last process anyway.
        let _ = Command::new("ip").args(["link", "del", "away"]).status();
    }
}

fn serves(_: &Setup) -> Result<(), String> {
    let (folder, _way_out) = (Folder::new("blog")?, WayOut::new()?);
    make_images(&folder.0)?;
    std::fs::write(folder.0.join("compose.yaml"), COMPOSE).map_err(|error| error.to_string())?;
    let port = qemu::free_tcp_port().map_err(|error| error.to_string())?;
    let compose = |words: &[&str]| {
        let mut command = sietch();
        command.current_dir(&folder.0).env("PORT", port.to_string());
        said(command.arg("compose").args(words), 0)
    };
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let up = |act: fn(SocketAddr) -> Result<(), String>| {
        let outcome = compose(&["up", "-d"]).and_then(|_| act(address));
        let log = compose(&["logs"]).unwrap_or_default();
        let ended = compose(&["down"]);
        outcome.map_err(|why| format!("{why}\n{log}"))?;
        ended.map(|_| log)
    };
    let first = up(|address| {
        install(address)?;
        is_there(address)
    })?;
    let again = up(is_there)?;
    compose(&["down", "-v"])?;
    said(sietch().args(["rmi", "mariadb", "wordpress"]), 0)?;
    match [first, again]
        .iter()
        .find(|log| log.contains("which Sietch lacks"))
    {
        Some(log) => Err(log.clone()),
        None => Ok(()),
    }
}

fn make_images(folder: &Path) -> Result<(), String> {
    let mariadb = Contents {
        packages: &[BASE, &["mariadb-server"]].concat(),
        others: &["/var/lib/mysql"],
        files: &[("/entrypoint", MARIADB)],
        config: MARIADB_CONFIG,
    };
    debian_image::make(&folder.join("mariadb"), &mariadb)?;
    let apache = Contents {
        packages: &[
            BASE,
            &["wordpress", "wordpress-theme-twentytwentythree", "apache2"],
        ]
        .concat(),
        others: &[],
        files: &[
            ("/entrypoint", APACHE),
            ("/etc/apache2/sites-enabled/000-default.conf", SITE),
            ("/etc/wordpress/config-default.php", SETTINGS),
        ],
        config: APACHE_CONFIG,
    };
    debian_image::make(&folder.join("wordpress"), &apache).map(drop)
}

/// Asks by curl, again as long as nobody listens.
fn ask(address: SocketAddr, path: &str, more: &[&str]) -> Result<String, String> {
    let mut curl = Command::new("curl");
    curl.args(["-sSf", "-m", "300", "--retry", "60", "--retry-delay", "1"]);
    curl.args(["--retry-all-errors", "--retry-max-time", "200"])
        .args(more);
    said(curl.arg(format!("http://{address}{path}")), 0)
}

fn install(address: SocketAddr) -> Result<(), String> {
    let page = ask(address, "/wp-admin/install.php", &[])?;
    expect_all(&page, &["name=\"weblog_title\""])?;
    let page = ask(address, "/wp-admin/install.php?step=2", &["-d", FORM])?;
    expect_all(&page, &["Success!"])?;
    write(address)
}

/// Logs in, and writes a post by the REST interface.
fn write(address: SocketAddr) -> Result<(), String> {
    let jar = write_file("cookies", "")?;
    let check = "Cookie: wordpress_test_cookie=WP%20Cookie%20check";
    let login = ["-c", &jar, "-H", check, "-d", LOGIN];
    ask(address, "/wp-login.php", &login)?;
    let nonce = "/wp-admin/admin-ajax.php?action=rest-nonce";
    let nonce = ask(address, nonce, &["-b", &jar])?;
    let nonce = format!("X-WP-Nonce: {}", nonce.trim());
    let post = ["-b", &jar, "-H", &nonce, "-d", POST];
    let answer = ask(address, "/?rest_route=/wp/v2/posts", &post)?;
    expect_all(&answer, &["\"status\":\"publish\""])
}

fn is_there(address: SocketAddr) -> Result<(), String> {
    let page = ask(address, "/?s=desert", &[])?;
    expect_all(&page, &["Water in the desert"])
}
