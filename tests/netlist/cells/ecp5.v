// Behavioural models of the ECP5 cells that occur in our netlists, for Icarus Verilog 11.
//
// Written from the published behaviour of the cells (Lattice FPGA libraries reference guide, sysMEM and sysDSP
// usage guides), for the modes that onnxhw uses. A cell in any other mode ends the simulation with an error.
// DP16KD gives X for a byte that is read in the clock cycle in which it is written, as the device defines no
// value; compile with -DCOLLISION_OLD to get the value before the write, as the portable form does.

`timescale 1ns / 1ps

module LUT4 (input A, B, C, D, output Z);
    parameter [15:0] INIT = 16'h0000;
    // Selecting step by step keeps a known result known when an unused input is X.
    wire [7:0] by_d = D ? INIT[15:8] : INIT[7:0];
    wire [3:0] by_c = C ? by_d[7:4] : by_d[3:0];
    wire [1:0] by_b = B ? by_c[3:2] : by_c[1:0];
    assign Z = A ? by_b[1] : by_b[0];
endmodule

module PFUMX (input ALUT, BLUT, C0, output Z);
    assign Z = C0 ? ALUT : BLUT;
endmodule

module L6MUX21 (input D0, D1, SD, output Z);
    assign Z = SD ? D1 : D0;
endmodule

module CCU2C (input CIN, A0, B0, C0, D0, A1, B1, C1, D1, output S0, S1, COUT);
    parameter [15:0] INIT0 = 16'h0000;
    parameter [15:0] INIT1 = 16'h0000;
    parameter INJECT1_0 = "YES";
    parameter INJECT1_1 = "YES";
    wire propagate_0, propagate_1;
    LUT4 #(.INIT(INIT0)) lut_0 (.A(A0), .B(B0), .C(C0), .D(D0), .Z(propagate_0));
    LUT4 #(.INIT(INIT1)) lut_1 (.A(A1), .B(B1), .C(C1), .D(D1), .Z(propagate_1));
    wire generate_0 = INIT0[{B0, A0}];
    wire generate_1 = INIT1[{B1, A1}];
    wire carry_0 = propagate_0 ? CIN : generate_0;
    assign COUT = propagate_1 ? carry_0 : generate_1;
    assign S0 = propagate_0 ^ CIN;
    assign S1 = propagate_1 ^ carry_0;
    initial if (INJECT1_0 != "NO" || INJECT1_1 != "NO") begin
        $display("ERROR: %m: CCU2C is modelled without injection only");
        $finish;
    end
endmodule

module TRELLIS_FF (input CLK, LSR, CE, DI, M, output reg Q);
    parameter GSR = "ENABLED";
    parameter [127:0] CEMUX = "1";
    parameter CLKMUX = "CLK";
    parameter LSRMUX = "LSR";
    parameter SRMODE = "LSR_OVER_CE";
    parameter REGSET = "RESET";
    parameter [127:0] LSRMODE = "LSR";
    // Choices are made by generate blocks, so that nothing is evaluated for them in every cycle.
    wire clock, enable, preset, value;
    generate
        if (CLKMUX == "INV") assign clock = ~CLK; else assign clock = CLK;
        if (CEMUX == "1") assign enable = 1'b1;
        else if (CEMUX == "0") assign enable = 1'b0;
        else if (CEMUX == "INV") assign enable = ~CE;
        else assign enable = CE;
        if (LSRMUX == "INV") assign preset = ~LSR; else assign preset = LSR;
        if (LSRMODE == "PRLD") assign value = M; else assign value = REGSET == "SET";
        // An unconnected LSR (Z) is no reset: neither branch of "preset" below is taken for it.
        if (SRMODE == "ASYNC") begin : asynchronous
            always @(posedge clock, posedge preset)
                if (preset === 1'b1) Q <= value;
                else if (enable) Q <= DI;
        end else begin : synchronous
            always @(posedge clock)
                if (preset === 1'b1) Q <= value;
                else if (preset === 1'bx) Q <= 1'bx;
                else if (enable) Q <= DI;
        end
    endgenerate
    initial Q = REGSET == "SET";
endmodule

module TRELLIS_DPR16X4 (input [3:0] DI, input [3:0] WAD, input WRE, WCK, input [3:0] RAD, output [3:0] DO);
    parameter WCKMUX = "WCK";
    parameter WREMUX = "WRE";
    parameter [63:0] INITVAL = 64'h0;
    reg [3:0] cells[0:15];
    integer i;
    initial for (i = 0; i < 16; i = i + 1) cells[i] = INITVAL[4 * i +: 4];
    wire clock = WCKMUX == "INV" ? ~WCK : WCK;
    wire write = WREMUX == "1" ? 1'b1 : WREMUX == "0" ? 1'b0 : WREMUX == "INV" ? ~WRE : WRE;
    always @(posedge clock) if (write) cells[WAD] <= DI;
    assign DO = cells[RAD];
endmodule

module MULT18X18D (
    input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
    input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
    input C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CE0, RST0,
    output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
    output P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
    parameter REG_INPUTA_CLK = "NONE";
    parameter REG_INPUTA_CE = "CE0";
    parameter REG_INPUTA_RST = "RST0";
    parameter REG_INPUTB_CLK = "NONE";
    parameter REG_INPUTB_CE = "CE0";
    parameter REG_INPUTB_RST = "RST0";
    parameter REG_INPUTC_CLK = "NONE";
    parameter REG_PIPELINE_CLK = "NONE";
    parameter REG_PIPELINE_CE = "CE0";
    parameter REG_PIPELINE_RST = "RST0";
    parameter REG_OUTPUT_CLK = "NONE";
    parameter REG_OUTPUT_CE = "CE0";
    parameter REG_OUTPUT_RST = "RST0";
    parameter CLK0_DIV = "ENABLED";
    parameter GSR = "ENABLED";
    parameter SOURCEB_MODE = "B_SHIFT";
    parameter MULT_BYPASS = "DISABLED";
    parameter RESETMODE = "SYNC";
    localparam REGISTERED = REG_INPUTA_CLK == "CLK0" && REG_INPUTB_CLK == "CLK0" && REG_PIPELINE_CLK == "CLK0"
        && REG_OUTPUT_CLK == "CLK0";
    localparam COMBINATIONAL = REG_INPUTA_CLK == "NONE" && REG_INPUTB_CLK == "NONE" && REG_PIPELINE_CLK == "NONE"
        && REG_OUTPUT_CLK == "NONE";
    wire signed [18:0] a = $signed({SIGNEDA & A17, A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4,
                                    A3, A2, A1, A0});
    wire signed [18:0] b = $signed({SIGNEDB & B17, B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4,
                                    B3, B2, B1, B0});
    reg signed [18:0] a_1 = 0, b_1 = 0;
    reg [35:0] p_2 = 0, p_3 = 0;
    wire [37:0] product = COMBINATIONAL ? a * b : a_1 * b_1;
    always @(posedge CLK0)
        if (RST0) begin
            a_1 <= 0;
            b_1 <= 0;
            p_2 <= 0;
            p_3 <= 0;
        end else if (CE0) begin
            a_1 <= a;
            b_1 <= b;
            p_2 <= product[35:0];
            p_3 <= p_2;
        end
    assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
            P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0}
        = COMBINATIONAL ? product[35:0] : p_3;
    initial if (!(REGISTERED || COMBINATIONAL) || SOURCEB_MODE != "B_SHIFT" || MULT_BYPASS != "DISABLED"
                || RESETMODE != "SYNC") begin
        $display("ERROR: %m: MULT18X18D is modelled with all registers or none");
        $finish;
    end
endmodule

module DP16KD (
    input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2,
    input DIA1, DIA0,
    input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
    input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2,
    input DIB1, DIB0,
    input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
    input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2,
    output DOA1, DOA0,
    output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2,
    output DOB1, DOB0
);
    // Port A writes, port B reads (with 36 bits: through the data pins of both).
    parameter DATA_WIDTH_A = 18;
    parameter DATA_WIDTH_B = 18;
    parameter REGMODE_A = "NOREG";
    parameter REGMODE_B = "NOREG";
    parameter RESETMODE = "SYNC";
    parameter ASYNC_RESET_RELEASE = "SYNC";
    parameter CSDECODE_A = "0b000";
    parameter CSDECODE_B = "0b000";
    parameter CLKAMUX = "CLKA";
    parameter CLKBMUX = "CLKB";
    parameter WRITEMODE_A = "NORMAL";
    parameter WRITEMODE_B = "NORMAL";
    parameter GSR = "ENABLED";
    parameter [319:0] INITVAL_00 = 320'b0;
    parameter [319:0] INITVAL_01 = 320'b0;
    parameter [319:0] INITVAL_02 = 320'b0;
    parameter [319:0] INITVAL_03 = 320'b0;
    parameter [319:0] INITVAL_04 = 320'b0;
    parameter [319:0] INITVAL_05 = 320'b0;
    parameter [319:0] INITVAL_06 = 320'b0;
    parameter [319:0] INITVAL_07 = 320'b0;
    parameter [319:0] INITVAL_08 = 320'b0;
    parameter [319:0] INITVAL_09 = 320'b0;
    parameter [319:0] INITVAL_0A = 320'b0;
    parameter [319:0] INITVAL_0B = 320'b0;
    parameter [319:0] INITVAL_0C = 320'b0;
    parameter [319:0] INITVAL_0D = 320'b0;
    parameter [319:0] INITVAL_0E = 320'b0;
    parameter [319:0] INITVAL_0F = 320'b0;
    parameter [319:0] INITVAL_10 = 320'b0;
    parameter [319:0] INITVAL_11 = 320'b0;
    parameter [319:0] INITVAL_12 = 320'b0;
    parameter [319:0] INITVAL_13 = 320'b0;
    parameter [319:0] INITVAL_14 = 320'b0;
    parameter [319:0] INITVAL_15 = 320'b0;
    parameter [319:0] INITVAL_16 = 320'b0;
    parameter [319:0] INITVAL_17 = 320'b0;
    parameter [319:0] INITVAL_18 = 320'b0;
    parameter [319:0] INITVAL_19 = 320'b0;
    parameter [319:0] INITVAL_1A = 320'b0;
    parameter [319:0] INITVAL_1B = 320'b0;
    parameter [319:0] INITVAL_1C = 320'b0;
    parameter [319:0] INITVAL_1D = 320'b0;
    parameter [319:0] INITVAL_1E = 320'b0;
    parameter [319:0] INITVAL_1F = 320'b0;
    parameter [319:0] INITVAL_20 = 320'b0;
    parameter [319:0] INITVAL_21 = 320'b0;
    parameter [319:0] INITVAL_22 = 320'b0;
    parameter [319:0] INITVAL_23 = 320'b0;
    parameter [319:0] INITVAL_24 = 320'b0;
    parameter [319:0] INITVAL_25 = 320'b0;
    parameter [319:0] INITVAL_26 = 320'b0;
    parameter [319:0] INITVAL_27 = 320'b0;
    parameter [319:0] INITVAL_28 = 320'b0;
    parameter [319:0] INITVAL_29 = 320'b0;
    parameter [319:0] INITVAL_2A = 320'b0;
    parameter [319:0] INITVAL_2B = 320'b0;
    parameter [319:0] INITVAL_2C = 320'b0;
    parameter [319:0] INITVAL_2D = 320'b0;
    parameter [319:0] INITVAL_2E = 320'b0;
    parameter [319:0] INITVAL_2F = 320'b0;
    parameter [319:0] INITVAL_30 = 320'b0;
    parameter [319:0] INITVAL_31 = 320'b0;
    parameter [319:0] INITVAL_32 = 320'b0;
    parameter [319:0] INITVAL_33 = 320'b0;
    parameter [319:0] INITVAL_34 = 320'b0;
    parameter [319:0] INITVAL_35 = 320'b0;
    parameter [319:0] INITVAL_36 = 320'b0;
    parameter [319:0] INITVAL_37 = 320'b0;
    parameter [319:0] INITVAL_38 = 320'b0;
    parameter [319:0] INITVAL_39 = 320'b0;
    parameter [319:0] INITVAL_3A = 320'b0;
    parameter [319:0] INITVAL_3B = 320'b0;
    parameter [319:0] INITVAL_3C = 320'b0;
    parameter [319:0] INITVAL_3D = 320'b0;
    parameter [319:0] INITVAL_3E = 320'b0;
    parameter [319:0] INITVAL_3F = 320'b0;
    // 2048 bytes of 9 bits.
    reg [8:0] cells[0:2047];
    wire [13:0] address_a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
    wire [13:0] address_b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
    wire [35:0] in = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4,
                      DIB3, DIB2, DIB1, DIB0, DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8,
                      DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
    wire [3:0] enables = DATA_WIDTH_A == 36 ? address_a[3:0] : DATA_WIDTH_A == 18 ? {2'b00, address_a[1:0]} : 4'b0001;
    wire write = CEA & (DATA_WIDTH_A == 36 ? 1'b1 : WEA) & ~(CSA0 | CSA1 | CSA2);
    wire read = CEB & ~(CSB0 | CSB1 | CSB2) & ~WEB;

    // Byte and bit of the first data bit.
    wire [10:0] byte_a = DATA_WIDTH_A == 36 ? {address_a[13:5], 2'b00}
        : DATA_WIDTH_A == 18 ? {address_a[13:4], 1'b0} : address_a[13:3];
    wire [10:0] byte_b = DATA_WIDTH_A == 36 ? {address_b[13:5], 2'b00}
        : DATA_WIDTH_A == 18 ? {address_b[13:4], 1'b0} : address_b[13:3];
    wire [8:0] narrow = (1 << DATA_WIDTH_A) - 1;

    reg [35:0] now;
    reg [35:0] latch = 0, register = 0;
    reg [8:0] old, mask;
    integer i;

    always @(posedge CLKA) begin
        // The read comes first: it sees what was there before this edge.
        if (read !== 1'b0) begin
            now = 0;
            for (i = 0; i < (DATA_WIDTH_A < 9 ? 1 : DATA_WIDTH_A / 9); i = i + 1) begin
                old = cells[byte_b + i];
`ifndef COLLISION_OLD
                if (write !== 1'b0 && enables[i] !== 1'b0 && byte_a + i == byte_b + i
                    && (DATA_WIDTH_A >= 9 || address_a == address_b)) old = 9'bx;
`endif
                if (DATA_WIDTH_A < 9) now = (old >> address_b[2:0]) & narrow;
                else now[9 * i +: 9] = old;
            end
            latch <= now;
        end
        if (OCEB) register <= latch;
        if (write !== 1'b0)
            for (i = 0; i < (DATA_WIDTH_A < 9 ? 1 : DATA_WIDTH_A / 9); i = i + 1)
                if (enables[i] !== 1'b0) begin
                    if (DATA_WIDTH_A < 9) begin
                        mask = narrow << address_a[2:0];
                        cells[byte_a] = (cells[byte_a] & ~mask) | ((in[8:0] << address_a[2:0]) & mask);
                    end else cells[byte_a + i] = in[9 * i +: 9];
                    if (enables[i] === 1'bx || write === 1'bx) cells[byte_a + i] = 9'bx;
                end
    end
    wire [35:0] out = REGMODE_B == "OUTREG" ? register : latch;
    assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2,
            DOA1, DOA0} = DATA_WIDTH_A == 36 ? out[17:0] : 18'bx;
    assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2,
            DOB1, DOB0} = DATA_WIDTH_A == 36 ? out[35:18] : out[17:0];

    task fill(input integer row, input [319:0] value);
        integer k;
        for (k = 0; k < 32; k = k + 1) cells[row * 32 + k] = value[20 * (k / 2) + 9 * (k % 2) +: 9];
    endtask
    initial begin
        fill(0, INITVAL_00);
        fill(1, INITVAL_01);
        fill(2, INITVAL_02);
        fill(3, INITVAL_03);
        fill(4, INITVAL_04);
        fill(5, INITVAL_05);
        fill(6, INITVAL_06);
        fill(7, INITVAL_07);
        fill(8, INITVAL_08);
        fill(9, INITVAL_09);
        fill(10, INITVAL_0A);
        fill(11, INITVAL_0B);
        fill(12, INITVAL_0C);
        fill(13, INITVAL_0D);
        fill(14, INITVAL_0E);
        fill(15, INITVAL_0F);
        fill(16, INITVAL_10);
        fill(17, INITVAL_11);
        fill(18, INITVAL_12);
        fill(19, INITVAL_13);
        fill(20, INITVAL_14);
        fill(21, INITVAL_15);
        fill(22, INITVAL_16);
        fill(23, INITVAL_17);
        fill(24, INITVAL_18);
        fill(25, INITVAL_19);
        fill(26, INITVAL_1A);
        fill(27, INITVAL_1B);
        fill(28, INITVAL_1C);
        fill(29, INITVAL_1D);
        fill(30, INITVAL_1E);
        fill(31, INITVAL_1F);
        fill(32, INITVAL_20);
        fill(33, INITVAL_21);
        fill(34, INITVAL_22);
        fill(35, INITVAL_23);
        fill(36, INITVAL_24);
        fill(37, INITVAL_25);
        fill(38, INITVAL_26);
        fill(39, INITVAL_27);
        fill(40, INITVAL_28);
        fill(41, INITVAL_29);
        fill(42, INITVAL_2A);
        fill(43, INITVAL_2B);
        fill(44, INITVAL_2C);
        fill(45, INITVAL_2D);
        fill(46, INITVAL_2E);
        fill(47, INITVAL_2F);
        fill(48, INITVAL_30);
        fill(49, INITVAL_31);
        fill(50, INITVAL_32);
        fill(51, INITVAL_33);
        fill(52, INITVAL_34);
        fill(53, INITVAL_35);
        fill(54, INITVAL_36);
        fill(55, INITVAL_37);
        fill(56, INITVAL_38);
        fill(57, INITVAL_39);
        fill(58, INITVAL_3A);
        fill(59, INITVAL_3B);
        fill(60, INITVAL_3C);
        fill(61, INITVAL_3D);
        fill(62, INITVAL_3E);
        fill(63, INITVAL_3F);
        #1;
        if (DATA_WIDTH_A != DATA_WIDTH_B || (DATA_WIDTH_A == 36 && REGMODE_A != REGMODE_B) || RESETMODE != "SYNC"
            || CSDECODE_A != "0b000" || CSDECODE_B != "0b000" || CLKAMUX != "CLKA" || CLKBMUX != "CLKB"
            || WRITEMODE_A != "NORMAL" || RSTA !== 1'b0 || RSTB !== 1'b0) begin
            $display("ERROR: %m: DP16KD is modelled as one write and one read port of equal width");
            $finish;
        end
    end
endmodule
