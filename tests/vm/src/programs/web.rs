//! Servers of web pages, and what applications of the web run in.

use super::{PROGRAM, Program, Ready, load};
use crate::Test;
use crate::http::HELLO;

/// Answers at `/`.
const WEB: Program = Program {
    port: 8000,
    ready: Ready::Answers(HELLO),
    ..PROGRAM
};

pub(super) const NGINX: Test = (
    "nginx runs as it is installed, and from an image: pages arrive",
    |setup| {
        Program {
            packages: &["nginx-light"],
            files: &[
                (
                    "nginx.conf",
                    "daemon off; worker_processes 2; pid /run/nginx.pid; events { worker_connections 256; }\n\
                     http { sendfile on; server { listen 8000; root /app; } }\n",
                ),
                ("index.html", "hello from nginx"),
            ],
            script: "exec nginx -c /app/nginx.conf",
            load: |address| load::http(address, "/", "hello from nginx"),
            ..WEB
        }
        .run(setup)
    },
);

pub(super) const PHP: Test = (
    "Apache with PHP runs as it is installed, and from an image: pages are made",
    |setup| {
        Program {
            packages: &["apache2", "libapache2-mod-php8.2"],
            files: &[(
                "page.php",
                "<?php $page = 'hello from PHP ' . array_sum(range(1, 1000)); header('Content-Length: ' . strlen($page)); echo $page;",
            )],
            script: "set -e; . /etc/apache2/envvars; mkdir -p /run/lock $APACHE_RUN_DIR
                cp /app/page.php /var/www/html; exec apache2 -D FOREGROUND",
            port: 80,
            load: |address| load::http(address, "/page.php", "hello from PHP 500500"),
            ..WEB
        }
        .run(setup)
    },
);

pub(super) const HAPROXY: Test = (
    "HAProxy runs as it is installed, and from an image: pages arrive through it",
    |setup| {
        Program {
            packages: &["haproxy", "busybox-static"],
            files: &[
                (
                    "haproxy.cfg",
                    "global\n  nbthread 2\ndefaults\n  mode http\n  timeout connect 10s\n  timeout client 60s\n  \
                     timeout server 60s\nfrontend front\n  bind :8000\n  default_backend site\nbackend site\n  \
                     server web 127.0.0.1:8081\n",
                ),
                ("index.html", "hello from behind"),
            ],
            script: "busybox httpd -p 127.0.0.1:8081 -h /app; exec haproxy -db -f /app/haproxy.cfg",
            load: |address| load::http(address, "/", "hello from behind"),
            ..WEB
        }
        .run(setup)
    },
);

pub(super) const GUNICORN: Test = (
    "gunicorn runs as it is installed, and from an image: pages are made",
    |setup| {
        Program {
            packages: &["gunicorn"],
            files: &[(
                "pages.py",
                "def app(request, start):\n    page = b'hello from gunicorn'\n    \
                 start('200 OK', [('Content-Length', str(len(page)))])\n    return [page]\n",
            )],
            script: "exec gunicorn --chdir /app -w 2 --threads 4 -b 0.0.0.0:8000 pages:app",
            load: |address| load::http(address, "/", "hello from gunicorn"),
            last_words: "Shutting down: Master",
            ..WEB
        }
        .run(setup)
    },
);

pub(super) const UVICORN: Test = (
    "uvicorn runs as it is installed, and from an image: pages are made",
    |setup| {
        Program {
            packages: &["uvicorn"],
            files: &[(
                "pages.py",
                "async def app(scope, receive, send):\n    if scope['type'] != 'http':\n        return\n    \
                 await send({'type': 'http.response.start', 'status': 200, 'headers': [[b'content-length', b'18']]})\n    \
                 await send({'type': 'http.response.body', 'body': b'hello from uvicorn'})\n",
            )],
            script: "exec uvicorn --app-dir /app --host 0.0.0.0 --workers 2 pages:app",
            load: |address| load::http(address, "/", "hello from uvicorn"),
            last_words: "Stopping parent process",
            ..WEB
        }
        .run(setup)
    },
);

pub(super) const PUMA: Test = (
    "puma runs as it is installed, and from an image: pages are made",
    |setup| {
        Program {
            packages: &["puma"],
            files: &[(
                "config.ru",
                "run ->(environment) { [200, {'content-type' => 'text/plain'}, ['hello from puma']] }\n",
            )],
            script: "exec puma -b tcp://0.0.0.0:8000 -w 2 -t 4:4 /app/config.ru",
            // It closes connections that stay while others wait.
            load: |address| load::http_fresh(address, "hello from puma"),
            last_words: "Goodbye!",
            ..WEB
        }
        .run(setup)
    },
);

pub(super) const STARMAN: Test = (
    "starman runs as it is installed, and from an image: pages are made",
    |setup| {
        Program {
            packages: &["starman"],
            files: &[(
                "app.psgi",
                "sub { [200, ['Content-Type', 'text/plain', 'Content-Length', 18], ['hello from starman']] }\n",
            )],
            script: "exec starman --workers 8 --port 8000 /app/app.psgi",
            load: |address| load::http(address, "/", "hello from starman"),
            last_words: "Server closing!",
            ..WEB
        }
        .run(setup)
    },
);

pub(super) const NODE: Test = (
    "Node runs as it is installed, and from an image: pages are made",
    |setup| {
        Program {
            packages: &["nodejs"],
            files: &[(
                "server.js",
                "const http = require('http');\nconst page = 'hello from Node';\n\
                 const server = http.createServer((request, response) => {\n    \
                 response.setHeader('Content-Length', page.length);\n    response.end(page);\n}).listen(8000);\n\
                 process.on('SIGTERM', () => { console.log('closed'); process.exit(0); });\n",
            )],
            script: "exec node /app/server.js",
            load: |address| load::http(address, "/", "hello from Node"),
            last_words: "closed",
            ..WEB
        }
        .run(setup)
    },
);
