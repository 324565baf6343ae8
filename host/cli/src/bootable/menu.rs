//! GRUB's menu: one entry, started at once.

/// The kernel's file in an image.
pub(super) const KERNEL: &str = "boot/sietch-kernel";
/// The archive's.
pub(super) const ARCHIVE: &str = "boot/image.cpio";
/// The menu's, where GRUB looks for it.
pub(super) const MENU: &str = "boot/grub/grub.cfg";

/// The menu that boots the program `name`. Text for people who read it too: a disk's owner
/// may change the words, and add archives that are unpacked over the first.
pub(super) fn text(name: &str, command_line: &str) -> String {
    let words: Vec<String> = command_line.split(' ').map(quoted).collect();
    let name = quoted(name);
    let words = words.join(" ");
    format!(
        "set timeout=0\nmenuentry {name} {{\n  multiboot2 /{KERNEL} {words}\n  module2 /{ARCHIVE}\n}}\n"
    )
}

/// One word of GRUB's language, whatever is in it (GRUB manual, "Writing full configuration
/// files directly"): only a single quote has to be left out of single quotes.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_command_line_reach_the_kernel_as_they_are() {
        let text = text("it's", "init=/bin/a$b;c ip=dhcp");
        assert_eq!(
            text,
            "set timeout=0\nmenuentry 'it'\\''s' {\n  multiboot2 /boot/sietch-kernel 'init=/bin/a$b;c' 'ip=dhcp'\n  module2 /boot/image.cpio\n}\n"
        );
    }
}
