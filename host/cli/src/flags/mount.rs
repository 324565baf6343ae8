//! `--mount`, docker's longer form of `-v` and `--tmpfs`.

use std::str::FromStr;

use super::root::Tmpfs;
use super::volume::Mount;

/// What one `--mount` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LongMount {
    /// What `-v` would.
    Volume(Mount),
    /// What `--tmpfs` would.
    Memory(Tmpfs),
}

impl FromStr for LongMount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give type=bind|volume|tmpfs,source=...,target=/...[,readonly]";
        let (mut kind, mut source, mut target) = ("volume", None, None);
        let (mut access, mut options) = ("rw", Vec::new());
        for word in text.split(',') {
            match word.split_once('=').unwrap_or((word, "true")) {
                ("type", value) => kind = value,
                ("source" | "src", value) => source = Some(value),
                ("target" | "destination" | "dst", value) => target = Some(value),
                ("readonly" | "ro", "true" | "1") => access = "ro",
                ("readonly" | "ro", "false" | "0") => access = "rw",
                ("tmpfs-size", value) => options.push(format!("size={value}")),
                ("tmpfs-mode", value) => options.push(format!("mode={value}")),
                _ => return Err(format!("{word} is not known: {FORM}")),
            }
        }
        let target = target.ok_or(FORM)?;
        match (kind, source) {
            ("tmpfs", None) => {
                let options = options.join(",");
                format!("{target}:{options}").parse().map(Self::Memory)
            }
            ("bind" | "volume", Some(source)) if options.is_empty() => {
                let is_path = source.contains('/');
                if is_path != (kind == "bind") {
                    return Err(FORM.into());
                }
                let mount = format!("{source}:{target}:{access}");
                mount.parse().map(Self::Volume)
            }
            _ => Err(FORM.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_form_says_what_the_short_one_does() {
        let mount = |text: &str| text.parse::<LongMount>();
        let short = |text: &str| Ok(LongMount::Volume(text.parse().unwrap()));
        assert_eq!(
            mount("type=bind,source=/srv,target=/data,readonly"),
            short("/srv:/data:ro")
        );
        assert_eq!(mount("src=db,dst=/data"), short("db:/data"));
        let memory = "/cache:size=64m,mode=700".parse().unwrap();
        assert_eq!(
            mount("type=tmpfs,target=/cache,tmpfs-size=64m,tmpfs-mode=700"),
            Ok(LongMount::Memory(memory))
        );
        for wrong in [
            "type=bind,source=db,target=/x",
            "type=tmpfs",
            "type=npipe,source=/a,target=/b",
            "type=bind,source=/a,target=/b,bind-propagation=shared",
        ] {
            assert!(mount(wrong).is_err(), "{wrong}");
        }
    }
}
