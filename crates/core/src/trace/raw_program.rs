//! The two programs that count system calls where the kernel has no BTF, assembled by hand: no
//! compiler, no loader, no offsets of kernel structs.
//!
//! `enter_program` notes time and number of the call of a thread whose process is followed;
//! `exit_program` adds it to the cell of thread and call. Each cell is written by its own thread alone,
//! so no addition is atomic. Without the kernel's structs two facts are missing: when a thread left the
//! CPU, and the parent of a process. Not here: maps and loading (`sys/linux_raw_trace.rs`).

/// An instruction in the format of bpf(2).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    pub code: u8,
    /// Destination in the low four bits, source in the high ones.
    pub registers: u8,
    pub offset: i16,
    pub value: i32,
}

/// Descriptors of the maps that the programs use.
#[derive(Debug, Clone, Copy)]
pub struct Maps {
    /// Process → anything.
    pub followed: i32,
    /// Thread → `ENTERED_BYTES`: when it entered its call (0: it is in none), and its number.
    pub entered: i32,
    /// Thread and number → `CELL_BYTES`: count, errors, nanoseconds.
    pub cells: i32,
}

pub const ENTERED_BYTES: u32 = 16;
/// Two 32-bit words: thread, then number of the call.
pub const CELL_KEY_BYTES: u32 = 8;
pub const CELL_BYTES: u32 = 24;

const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R6: u8 = 6;
const R7: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;
const STACK: u8 = 10;

/// Functions of the kernel (bpf-helpers(7)).
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const CLOCK_NS: i32 = 5;
const CURRENT_PID_TGID: i32 = 14;

/// A raw tracepoint's second argument: the number of the call when it enters, its result when it leaves.
const SECOND_ARGUMENT: i16 = 8;
/// Errors, as unsigned numbers, are above it: -4095 to -1.
const LOWEST_NO_ERROR: i32 = -4096;

const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> Instruction {
    Instruction { code, registers: to | (from << 4), offset, value }
}

fn set(to: u8, value: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, value)
}
fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}
fn add(to: u8, value: i32) -> Instruction {
    instruction(0x07, to, 0, 0, value)
}
fn add_register(to: u8, from: u8) -> Instruction {
    instruction(0x0f, to, from, 0, 0)
}
fn subtract_register(to: u8, from: u8) -> Instruction {
    instruction(0x1f, to, from, 0, 0)
}
fn shift_right(to: u8, bits: i32) -> Instruction {
    instruction(0x77, to, 0, 0, bits)
}
fn load32(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x61, to, from, offset, 0)
}
fn load64(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x79, to, from, offset, 0)
}
fn store32(to: u8, offset: i16, from: u8) -> Instruction {
    instruction(0x63, to, from, offset, 0)
}
fn store64(to: u8, offset: i16, from: u8) -> Instruction {
    instruction(0x7b, to, from, offset, 0)
}
fn call(function: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, function)
}
fn end() -> Instruction {
    instruction(0x95, 0, 0, 0, 0)
}
/// Skips `over` instructions when the register is zero.
fn skip_if_zero(register: u8, over: i16) -> Instruction {
    instruction(0x15, register, 0, over, 0)
}
fn skip_if_not_zero(register: u8, over: i16) -> Instruction {
    instruction(0x55, register, 0, over, 0)
}
/// Compares unsigned numbers.
fn skip_if_at_most(register: u8, other: u8, over: i16) -> Instruction {
    instruction(0xbd, register, other, over, 0)
}
/// The address of a map; takes the room of two instructions.
fn load_map(to: u8, map: i32) -> [Instruction; 2] {
    const IS_MAP: u8 = 1;
    [instruction(0x18, to, IS_MAP, 0, map), instruction(0, 0, 0, 0, 0)]
}
/// `to` = an address on the stack.
fn stack_address(to: u8, offset: i32) -> [Instruction; 2] {
    [copy(to, STACK), add(to, offset)]
}

/// Program of the tracepoint `sys_enter`. The stack: process at -4, thread at -8, the entered call at
/// -32.
pub fn enter_program(maps: Maps) -> Vec<Instruction> {
    let [followed, followed_end] = load_map(R1, maps.followed);
    let [entered, entered_end] = load_map(R1, maps.entered);
    let [process, process_end] = stack_address(R2, -4);
    let [thread, thread_end] = stack_address(R2, -8);
    let [value, value_end] = stack_address(R3, -32);
    vec![
        copy(R6, R1),
        call(CURRENT_PID_TGID),
        copy(R7, R0),
        shift_right(R0, 32),
        store32(STACK, -4, R0),
        followed,
        followed_end,
        process,
        process_end,
        call(MAP_LOOKUP),
        skip_if_zero(R0, 13),
        store32(STACK, -8, R7),
        call(CLOCK_NS),
        store64(STACK, -32, R0),
        load64(R1, R6, SECOND_ARGUMENT),
        store64(STACK, -24, R1),
        entered,
        entered_end,
        thread,
        thread_end,
        value,
        value_end,
        set(R4, 0),
        call(MAP_UPDATE),
        set(R0, 0),
        end(),
    ]
}

/// Program of the tracepoint `sys_exit`. The stack: thread at -8, key of the cell at -16, a new cell at
/// -40.
pub fn exit_program(maps: Maps) -> Vec<Instruction> {
    let [entered, entered_end] = load_map(R1, maps.entered);
    let [thread, thread_end] = stack_address(R2, -8);
    let [cells, cells_end] = load_map(R1, maps.cells);
    let [key, key_end] = stack_address(R2, -16);
    let [fresh, fresh_end] = stack_address(R3, -40);
    let mut program = vec![
        copy(R6, R1),
        call(CURRENT_PID_TGID),
        store32(STACK, -8, R0),
        entered,
        entered_end,
        thread,
        thread_end,
        call(MAP_LOOKUP),
        skip_if_not_zero(R0, 2),
        set(R0, 0),
        end(),
        // R8: time of entering the call; R9: its number.
        load64(R8, R0, 0),
        load64(R9, R0, 8),
        skip_if_not_zero(R8, 2),
        set(R0, 0),
        end(),
        set(R1, 0),
        store64(R0, 0, R1),
        load32(R1, STACK, -8),
        store32(STACK, -16, R1),
        store32(STACK, -12, R9),
        call(CLOCK_NS),
        subtract_register(R0, R8),
        copy(R8, R0),
        // R8: duration of the call; R9: 1 for an error.
        load64(R1, R6, SECOND_ARGUMENT),
        set(R9, 0),
        set(R2, LOWEST_NO_ERROR),
        skip_if_at_most(R1, R2, 1),
        set(R9, 1),
        cells,
        cells_end,
        key,
        key_end,
        call(MAP_LOOKUP),
    ];
    let insert = [
        set(R1, 1),
        store64(STACK, -40, R1),
        store64(STACK, -32, R9),
        store64(STACK, -24, R8),
        cells,
        cells_end,
        key,
        key_end,
        fresh,
        fresh_end,
        set(R4, 0),
        call(MAP_UPDATE),
        set(R0, 0),
        end(),
    ];
    let count = [
        load64(R1, R0, 0),
        add(R1, 1),
        store64(R0, 0, R1),
        load64(R1, R0, 8),
        add_register(R1, R9),
        store64(R0, 8, R1),
        load64(R1, R0, 16),
        add_register(R1, R8),
        store64(R0, 16, R1),
        set(R0, 0),
        end(),
    ];
    program.push(skip_if_not_zero(R0, insert.len() as i16));
    program.extend(insert);
    program.extend(count);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: Maps = Maps { followed: 3, entered: 4, cells: 5 };
    const LOAD_MAP: u8 = 0x18;
    const EXIT: u8 = 0x95;

    /// True: the instruction may continue elsewhere than at the next one.
    fn jumps(instruction: &Instruction) -> bool {
        matches!(instruction.code, 0x15 | 0x55 | 0xbd)
    }

    #[test]
    fn every_jump_lands_on_an_instruction_of_the_program() {
        for program in [enter_program(MAPS), exit_program(MAPS)] {
            for (at, instruction) in program.iter().enumerate().filter(|(_, each)| jumps(each)) {
                let target = at + 1 + instruction.offset as usize;
                assert!(target < program.len());
                assert_ne!(program[target - 1].code, LOAD_MAP, "the second half of an address");
            }
        }
    }

    #[test]
    fn both_programs_end_and_use_their_maps() {
        let maps = |program: &[Instruction]| -> Vec<i32> {
            let loads = program.iter().filter(|each| each.code == LOAD_MAP);
            loads.map(|each| each.value).collect()
        };
        assert_eq!(maps(&enter_program(MAPS)), [3, 4]);
        assert_eq!(maps(&exit_program(MAPS)), [4, 5, 5]);
        for program in [enter_program(MAPS), exit_program(MAPS)] {
            assert_eq!(program.last().map(|each| each.code), Some(EXIT));
        }
    }

    #[test]
    fn a_call_of_a_process_that_is_not_followed_goes_to_the_end() {
        let program = enter_program(MAPS);
        let at = program.iter().position(jumps).expect("a jump");
        let target = at + 1 + program[at].offset as usize;
        assert_eq!(target, program.len() - 2); // the result 0, then the end
    }
}
