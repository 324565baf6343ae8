//! Any bytes are an archive: members that are whole, then the end or one error. What
//! was read can be written and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut writer = cpio::Writer::new();
    let mut entries = Vec::new();
    for entry in cpio::Archive::new(bytes).map_while(Result::ok) {
        assert!(entry.name.len() + entry.data.len() <= bytes.len());
        writer.append(&entry).expect("it was short enough to be read");
        entries.push(entry);
    }
    let copy = writer.finish();
    let read: Vec<_> = cpio::Archive::new(&copy).map(|entry| entry.expect("we wrote it")).collect();
    assert_eq!(read, entries);
});
