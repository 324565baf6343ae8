//! The program's environment, but for `-e`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use clap::Args;

use super::life::is_entry;
use crate::failure::Failure;

/// See the module.
#[derive(Clone, Debug, Default, Args)]
pub struct EnvironmentFlags {
    /// A file with variables, NAME[=VALUE] a line; -e comes after it
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
    /// Have all variables of this host, too
    #[arg(long)]
    pub env_host: bool,
    /// Have the host's variables for proxies (http_proxy and its kin)
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    pub http_proxy: bool,
    /// Make a variable of others that the image has, as PATH=${PATH}:/opt/bin
    #[arg(long, value_name = "NAME=VALUE")]
    pub env_merge: Vec<String>,
    /// Leave out a variable that the image or sietch has
    #[arg(long, value_name = "NAME")]
    pub unsetenv: Vec<String>,
    /// Leave out all that the image and sietch have
    #[arg(long)]
    pub unsetenv_all: bool,
}

const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "ftp_proxy", "no_proxy"];

impl EnvironmentFlags {
    /// What of `usual`, which image and machine have, is left.
    pub fn left_of(&self, usual: Vec<String>) -> Vec<String> {
        let is_unset = |word: &String| {
            let name = word.split('=').next().unwrap_or_default();
            self.unsetenv_all || self.unsetenv.iter().any(|unset| unset == name)
        };
        let merged: Vec<String> = self
            .env_merge
            .iter()
            .map(|word| merged(word, &usual))
            .collect();
        let left = usual.into_iter().filter(|word| !is_unset(word));
        left.chain(merged).collect()
    }

    /// What comes before `-e`.
    ///
    /// Errors: a file that cannot be read.
    pub fn further(&self) -> Result<Vec<String>, Failure> {
        let host: BTreeMap<String, String> = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let word = |name: &str| Some(format!("{name}={}", host.get(name)?));
        let mut words = Vec::new();
        if self.env_host {
            words.extend(host.keys().filter_map(|name| word(name)));
        }
        if self.http_proxy {
            let both = PROXIES
                .iter()
                .flat_map(|name| [name.to_string(), name.to_uppercase()]);
            words.extend(both.filter_map(|name| word(&name)));
        }
        for path in &self.env_file {
            let text = fs::read_to_string(path).map_err(Failure::file(path))?;
            for line in text.lines().filter(|line| is_entry(line)) {
                let line = line.trim_start();
                match line.contains('=') {
                    true => words.push(line.into()),
                    false => words.extend(word(line.trim_end())),
                }
            }
        }
        Ok(words)
    }
}

/// `word` with the values of `usual` in the place of `${NAME}`.
fn merged(word: &str, usual: &[String]) -> String {
    let value = |name: &str| {
        let mut pairs = usual.iter().filter_map(|word| word.split_once('='));
        pairs
            .find(|(other, _)| *other == name)
            .map_or("", |(_, value)| value)
    };
    let (mut whole, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        whole += before;
        whole += value(name);
        rest = behind;
    }
    whole + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_comments_values_and_names_of_the_host() {
        let path = env::temp_dir().join(format!("sietch-env-file-{}", std::process::id()));
        fs::write(
            &path,
            "# a comment\n\nA=b=c\nPATH\nNOT_SET_ANYWHERE_1\nQ=\"x\"\n",
        )
        .unwrap();
        let flags = EnvironmentFlags {
            env_file: vec![path.clone()],
            ..EnvironmentFlags::default()
        };
        let words = flags.further().unwrap();
        fs::remove_file(path).unwrap();
        let path = format!("PATH={}", env::var("PATH").unwrap());
        assert_eq!(words, ["A=b=c".to_string(), path, "Q=\"x\"".into()]);
    }

    #[test]
    fn a_variable_is_made_of_others() {
        let usual = ["A=x".to_string(), "B=y=z".to_string()];
        assert_eq!(merged("C=${A}-${B}-${D}.", &usual), "C=x-y=z-.");
        assert_eq!(merged("C=${A", &usual), "C=${A");
    }

    #[test]
    fn variables_are_left_out_by_name() {
        let flags = EnvironmentFlags {
            unsetenv: vec!["HOME".into()],
            ..EnvironmentFlags::default()
        };
        let usual = vec!["HOME=/".into(), "HOMES=1".into()];
        assert_eq!(flags.left_of(usual), ["HOMES=1"]);
    }
}
