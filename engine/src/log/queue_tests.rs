use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use super::*;

/// Bytes that a pipe takes when nobody reads it.
const PIPE: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(40);

/// Starts the thread that writes standard error into a pipe that is full; returns its queue and the pipe's reader.
fn stuck() -> (Arc<Queue>, BufReader<File>) {
    let (read, write) = io::pipe().unwrap();
    let write = OwnedFd::from(write);
    let mut own = File::from(write.try_clone().unwrap());
    own.write_all(&[b'\n'; PIPE]).unwrap();
    let sinks = vec![(Stream::Error, Sink::File(write))];
    let queue = Arc::new(Queue::new(sinks, Stream::Error).unwrap());
    let writing = Arc::clone(&queue);
    std::thread::spawn(move || writing.write());
    (queue, BufReader::new(File::from(OwnedFd::from(read))))
}

/// Returns the next line that is not empty.
fn line(reader: &mut BufReader<File>) -> String {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line != "\n" {
            return line.trim_end().to_owned();
        }
    }
}

#[test]
fn who_says_something_waits_for_no_reader_and_what_is_lost_is_counted_and_said() {
    const SAID: u64 = 5_000;
    let (queue, mut reader) = stuck();
    // It would not come back if it waited.
    (0..SAID).for_each(|n| queue.say(Stream::Error, format!("message {n}\n").as_bytes()));
    queue.unwritten().wait(Duration::from_millis(20));
    assert!(!queue.unwritten().is_none(), "nobody reads");
    let reading = std::thread::spawn(move || {
        let (mut kept, mut lost) = (Vec::new(), 0);
        while kept.len() as u64 + lost < SAID {
            let line = line(&mut reader);
            match line.strip_prefix("message ") {
                Some(number) => kept.push(number.parse::<u64>().unwrap()),
                None => {
                    let (count, rest) = line.split_once(' ').unwrap();
                    assert_eq!(rest, "messages lost: the log was not read");
                    lost += count.parse::<u64>().unwrap();
                }
            }
        }
        (kept, lost, reader)
    });
    let (kept, lost, mut reader) = reading.join().unwrap();
    assert!(
        kept.len() >= 100 && lost > 0,
        "{} kept, {lost} lost",
        kept.len()
    );
    assert!(kept.is_sorted(), "{kept:?}");
    queue.say(Stream::Error, b"after\n");
    assert_eq!(line(&mut reader), "after", "nothing is counted twice");
    queue.unwritten().wait(PATIENCE);
    assert!(queue.unwritten().is_none());
}

#[test]
fn a_text_of_any_length_that_has_room_arrives_whole() {
    let (queue, mut reader) = stuck();
    let text = format!("{}\n", "long ".repeat(WHOLE / 4));
    queue.say(Stream::Error, text.as_bytes());
    assert_eq!(line(&mut reader), text.trim_end());
}
