//! `fuzz/targets`: `netconf` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocescope_fuzz::netconf(data));
