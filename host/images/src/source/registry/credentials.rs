//! Who we are for a registry: what `docker login` keeps in `config.json`, or in a helper that the file names.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// A name and its password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    user: String,
    password: String,
}

/// Docker's file, as far as it matters here.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    auths: HashMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Auth {
    /// `NAME:PASSWORD` in base 64.
    auth: String,
}

/// What a helper prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Helped {
    username: String,
    secret: String,
}

impl Credentials {
    /// Those for `host`, if there are any.
    pub(super) fn find(host: &str) -> Option<Self> {
        let folder = env::var_os("DOCKER_CONFIG").map(PathBuf::from);
        let folder =
            folder.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".docker")))?;
        let text = fs::read(folder.join("config.json")).ok()?;
        let config: Config = serde_json::from_slice(&text).ok()?;
        let helper = config
            .cred_helpers
            .get(host)
            .or(config.creds_store.as_ref());
        helper
            .and_then(|helper| Self::ask(helper, host))
            .or_else(|| Self::of_file(&config, host))
    }

    fn of_file(config: &Config, host: &str) -> Option<Self> {
        let plain = |key: &str| {
            let key = key
                .trim_start_matches("https://")
                .trim_start_matches("http://");
            key.split('/').next() == Some(host)
        };
        let (_, auth) = config.auths.iter().find(|(key, _)| plain(key))?;
        let text = String::from_utf8(STANDARD.decode(&auth.auth).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        Some(Self {
            user: user.into(),
            password: password.into(),
        })
    }

    /// Asks the helper's program, which gets the host on its input.
    fn ask(helper: &str, host: &str) -> Option<Self> {
        let mut child = Command::new(format!("docker-credential-{helper}"))
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let asked = child
            .stdin
            .take()
            .map(|mut input| input.write_all(host.as_bytes()));
        let output = child.wait_with_output().ok()?;
        asked?.ok()?;
        let helped: Helped = serde_json::from_slice(&output.stdout).ok()?;
        Some(Self {
            user: helped.username,
            password: helped.secret,
        })
    }

    /// As a header (RFC 7617).
    pub(super) fn basic(&self) -> String {
        format!(
            "Basic {}",
            STANDARD.encode(format!("{}:{}", self.user, self.password))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_docker_login_is_understood() {
        let text = r#"{"auths":{"https://reg.example/v1/":{"auth":"dXNlcjpwYTpzcw=="},"other:5000":{}},"credsStore":"none"}"#;
        let config: Config = serde_json::from_str(text).unwrap();
        let found = Credentials::of_file(&config, "reg.example").unwrap();
        assert_eq!(
            (found.user.as_str(), found.password.as_str()),
            ("user", "pa:ss")
        );
        assert_eq!(found.basic(), "Basic dXNlcjpwYTpzcw==");
        assert_eq!(Credentials::of_file(&config, "other:5000"), None);
        assert_eq!(Credentials::of_file(&config, "third"), None);
    }
}
