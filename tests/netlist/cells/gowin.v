// Behavioural models of the GW2A cells that occur in our netlists, for Icarus Verilog 11.
//
// Written from the published behaviour of the cells (Gowin's guides to CFU, BSRAM and DSP: SUG283, UG285, UG287), for
// the modes that onnxhw uses. A cell in any other mode ends the simulation with an error. A block RAM gives X for a byte
// that is read in the clock cycle in which it is written, as the device promises nothing; compile with -DCOLLISION_OLD
// to get the value before the write, as the portable form does.

`timescale 1ns / 1ps

module GND (output G);
    assign G = 1'b0;
endmodule

module VCC (output V);
    assign V = 1'b1;
endmodule

// Selecting step by step keeps a known result known when an unused input is X.
module LUT4 (input I0, I1, I2, I3, output F);
    parameter [15:0] INIT = 16'h0000;
    wire [7:0] by_3 = I3 ? INIT[15:8] : INIT[7:0];
    wire [3:0] by_2 = I2 ? by_3[7:4] : by_3[3:0];
    wire [1:0] by_1 = I1 ? by_2[3:2] : by_2[1:0];
    assign F = I0 ? by_1[1] : by_1[0];
endmodule

module LUT3 (input I0, I1, I2, output F);
    parameter [7:0] INIT = 8'h00;
    LUT4 #(.INIT({INIT, INIT})) table_ (.I0(I0), .I1(I1), .I2(I2), .I3(1'b0), .F(F));
endmodule

module LUT2 (input I0, I1, output F);
    parameter [3:0] INIT = 4'h0;
    LUT4 #(.INIT({4{INIT}})) table_ (.I0(I0), .I1(I1), .I2(1'b0), .I3(1'b0), .F(F));
endmodule

module LUT1 (input I0, output F);
    parameter [1:0] INIT = 2'h0;
    LUT4 #(.INIT({8{INIT}})) table_ (.I0(I0), .I1(1'b0), .I2(1'b0), .I3(1'b0), .F(F));
endmodule

module MUX2_LUT5 (input I0, I1, S0, output O);
    assign O = S0 ? I1 : I0;
endmodule

module MUX2_LUT6 (input I0, I1, S0, output O);
    assign O = S0 ? I1 : I0;
endmodule

module MUX2_LUT7 (input I0, I1, S0, output O);
    assign O = S0 ? I1 : I0;
endmodule

module MUX2_LUT8 (input I0, I1, S0, output O);
    assign O = S0 ? I1 : I0;
endmodule

// Sum of I0 and I1, or of I0 and the complement of I1.
module ALU (input I0, I1, I3, CIN, output SUM, COUT);
    parameter ALU_MODE = 0;
    wire other = ALU_MODE == 0 ? I1 : ALU_MODE == 1 ? ~I1 : I3 ? I1 : ~I1;
    wire propagate = I0 ^ other;
    assign SUM = propagate ^ CIN;
    assign COUT = propagate ? CIN : I0;
    initial if (ALU_MODE > 2) begin
        $display("ERROR: %m: ALU is modelled for sums and differences only");
        $finish;
    end
endmodule

module DFF (input CLK, D, output reg Q);
    parameter [0:0] INIT = 1'b0;
    initial Q = INIT;
    always @(posedge CLK)
        Q <= D;
    initial if (INIT !== 1'b0) begin
        $display("ERROR: %m: the device starts DFF with 0");
        $finish;
    end
endmodule

module DFFE (input CLK, D, CE, output reg Q);
    parameter [0:0] INIT = 1'b0;
    initial Q = INIT;
    always @(posedge CLK)
        if (CE) Q <= D;
    initial if (INIT !== 1'b0) begin
        $display("ERROR: %m: the device starts DFFE with 0");
        $finish;
    end
endmodule

module DFFR (input CLK, D, RESET, output reg Q);
    parameter [0:0] INIT = 1'b0;
    initial Q = INIT;
    always @(posedge CLK)
        if (RESET === 1'b1) Q <= 1'b0;
        else if (RESET === 1'bx) Q <= 1'bx;
        else Q <= D;
    initial if (INIT !== 1'b0) begin
        $display("ERROR: %m: the device starts DFFR with 0");
        $finish;
    end
endmodule

module DFFRE (input CLK, D, CE, RESET, output reg Q);
    parameter [0:0] INIT = 1'b0;
    initial Q = INIT;
    always @(posedge CLK)
        if (RESET === 1'b1) Q <= 1'b0;
        else if (RESET === 1'bx) Q <= 1'bx;
        else if (CE) Q <= D;
    initial if (INIT !== 1'b0) begin
        $display("ERROR: %m: the device starts DFFRE with 0");
        $finish;
    end
endmodule

module DFFS (input CLK, D, SET, output reg Q);
    parameter [0:0] INIT = 1'b1;
    initial Q = INIT;
    always @(posedge CLK)
        if (SET === 1'b1) Q <= 1'b1;
        else if (SET === 1'bx) Q <= 1'bx;
        else Q <= D;
    initial if (INIT !== 1'b1) begin
        $display("ERROR: %m: the device starts DFFS with 1");
        $finish;
    end
endmodule

module DFFSE (input CLK, D, CE, SET, output reg Q);
    parameter [0:0] INIT = 1'b1;
    initial Q = INIT;
    always @(posedge CLK)
        if (SET === 1'b1) Q <= 1'b1;
        else if (SET === 1'bx) Q <= 1'bx;
        else if (CE) Q <= D;
    initial if (INIT !== 1'b1) begin
        $display("ERROR: %m: the device starts DFFSE with 1");
        $finish;
    end
endmodule

module RAM16SDP1 (input DI, input [3:0] WAD, RAD, input WRE, CLK, output DO);
    parameter [15:0] INIT_0 = 16'h0000;
    reg [0:0] cells[0:15];
    integer i;
    initial for (i = 0; i < 16; i = i + 1) begin cells[i][0] = INIT_0[i]; end
    always @(posedge CLK) if (WRE) cells[WAD] <= DI;
    assign DO = cells[RAD];
endmodule

module RAM16SDP2 (input [1:0] DI, input [3:0] WAD, RAD, input WRE, CLK, output [1:0] DO);
    parameter [15:0] INIT_0 = 16'h0000;
    parameter [15:0] INIT_1 = 16'h0000;
    reg [1:0] cells[0:15];
    integer i;
    initial for (i = 0; i < 16; i = i + 1) begin cells[i][0] = INIT_0[i]; cells[i][1] = INIT_1[i]; end
    always @(posedge CLK) if (WRE) cells[WAD] <= DI;
    assign DO = cells[RAD];
endmodule

module RAM16SDP4 (input [3:0] DI, input [3:0] WAD, RAD, input WRE, CLK, output [3:0] DO);
    parameter [15:0] INIT_0 = 16'h0000;
    parameter [15:0] INIT_1 = 16'h0000;
    parameter [15:0] INIT_2 = 16'h0000;
    parameter [15:0] INIT_3 = 16'h0000;
    reg [3:0] cells[0:15];
    integer i;
    initial for (i = 0; i < 16; i = i + 1) begin cells[i][0] = INIT_0[i]; cells[i][1] = INIT_1[i]; cells[i][2] = INIT_2[i]; cells[i][3] = INIT_3[i]; end
    always @(posedge CLK) if (WRE) cells[WAD] <= DI;
    assign DO = cells[RAD];
endmodule

module MULT9X9 (
    input [8:0] A, B, SIA, SIB, input ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET,
    output [17:0] DOUT, output [8:0] SOA, SOB
);
    parameter AREG = 1'b0;
    parameter BREG = 1'b0;
    parameter OUT_REG = 1'b0;
    parameter PIPE_REG = 1'b0;
    parameter ASIGN_REG = 1'b0;
    parameter BSIGN_REG = 1'b0;
    parameter SOA_REG = 1'b0;
    parameter MULT_RESET_MODE = "SYNC";
    reg signed [9:0] a = 0, b = 0;
    reg [17:0] between = 0, out = 0;
    wire [19:0] product = a * b;
    always @(posedge CLK)
        if (RESET) begin
            a <= 0;
            b <= 0;
            between <= 0;
            out <= 0;
        end else if (CE) begin
            a <= {ASIGN & A[8], A};
            b <= {BSIGN & B[8], B};
            between <= product[17:0];
            out <= PIPE_REG ? between : product[17:0];
        end
    assign DOUT = out;
    initial if (!AREG || !BREG || !OUT_REG || ASIGN_REG || BSIGN_REG || SOA_REG || MULT_RESET_MODE != "SYNC") begin
        $display("ERROR: %m: MULT9X9 is modelled with registers of operands and product only");
        $finish;
    end
    initial #1 if (ASEL !== 1'b0 || BSEL !== 1'b0) begin
        $display("ERROR: %m: MULT9X9 is modelled with its own operands only");
        $finish;
    end
endmodule

module MULT18X18 (
    input [17:0] A, B, SIA, SIB, input ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET,
    output [35:0] DOUT, output [17:0] SOA, SOB
);
    parameter AREG = 1'b0;
    parameter BREG = 1'b0;
    parameter OUT_REG = 1'b0;
    parameter PIPE_REG = 1'b0;
    parameter ASIGN_REG = 1'b0;
    parameter BSIGN_REG = 1'b0;
    parameter SOA_REG = 1'b0;
    parameter MULT_RESET_MODE = "SYNC";
    reg signed [18:0] a = 0, b = 0;
    reg [35:0] between = 0, out = 0;
    wire [37:0] product = a * b;
    always @(posedge CLK)
        if (RESET) begin
            a <= 0;
            b <= 0;
            between <= 0;
            out <= 0;
        end else if (CE) begin
            a <= {ASIGN & A[17], A};
            b <= {BSIGN & B[17], B};
            between <= product[35:0];
            out <= PIPE_REG ? between : product[35:0];
        end
    assign DOUT = out;
    initial if (!AREG || !BREG || !OUT_REG || ASIGN_REG || BSIGN_REG || SOA_REG || MULT_RESET_MODE != "SYNC") begin
        $display("ERROR: %m: MULT18X18 is modelled with registers of operands and product only");
        $finish;
    end
    initial #1 if (ASEL !== 1'b0 || BSEL !== 1'b0) begin
        $display("ERROR: %m: MULT18X18 is modelled with its own operands only");
        $finish;
    end
endmodule

// 2048 bytes of BYTE bits, 8 or 9; port A writes, port B reads. WIDTH bits per address.
module onnxhw_block_ram (
    input CLKA, CEA, CLKB, CEB, OCE, RESETA, RESETB, input [13:0] ADA, ADB, input [2:0] BLKSELA, BLKSELB,
    input [4 * BYTE - 1:0] DI, output [4 * BYTE - 1:0] DO
);
    parameter BYTE = 9;
    parameter WIDTH = 36;
    parameter REGISTERED = 0;
    localparam COUNT = WIDTH < BYTE ? 1 : WIDTH / BYTE;
    reg [BYTE - 1:0] cells[0:2047];
    integer i;
    task fill(input integer row, input [32 * BYTE - 1:0] value);
        integer k;
        for (k = 0; k < 32; k = k + 1) cells[row * 32 + k] = value[BYTE * k +: BYTE];
    endtask

    wire [3:0] enables = COUNT == 4 ? ADA[3:0] : COUNT == 2 ? {2'b00, ADA[1:0]} : 4'b0001;
    wire write = CEA & ~|BLKSELA, read = CEB & ~|BLKSELB;
    // Byte of the first data bit.
    wire [10:0] byte_a = COUNT == 4 ? {ADA[13:5], 2'b00} : COUNT == 2 ? {ADA[13:4], 1'b0} : ADA[13:3];
    wire [10:0] byte_b = COUNT == 4 ? {ADB[13:5], 2'b00} : COUNT == 2 ? {ADB[13:4], 1'b0} : ADB[13:3];
    wire [BYTE - 1:0] narrow = (1 << WIDTH) - 1;
    reg [4 * BYTE - 1:0] now;
    reg [4 * BYTE - 1:0] latch = 0, register = 0;
    reg [BYTE - 1:0] old, mask;

    always @(posedge CLKA) begin
        // The read comes first: it sees what was there before this edge.
        if (read !== 1'b0) begin
            now = 0;
            for (i = 0; i < COUNT; i = i + 1) begin
                old = cells[byte_b + i];
`ifndef COLLISION_OLD
                if (write !== 1'b0 && enables[i] !== 1'b0 && byte_a + i == byte_b + i
                    && (WIDTH >= BYTE || ADA == ADB)) old = {BYTE{1'bx}};
`endif
                if (WIDTH < BYTE) now = (old >> ADB[2:0]) & narrow;
                else now[BYTE * i +: BYTE] = old;
            end
            latch <= now;
        end
        if (OCE) register <= latch;
        if (write !== 1'b0)
            for (i = 0; i < COUNT; i = i + 1)
                if (enables[i] !== 1'b0) begin
                    if (WIDTH < BYTE) begin
                        mask = narrow << ADA[2:0];
                        cells[byte_a] = (cells[byte_a] & ~mask) | ((DI[BYTE - 1:0] << ADA[2:0]) & mask);
                    end else cells[byte_a + i] = DI[BYTE * i +: BYTE];
                    if (enables[i] === 1'bx || write === 1'bx) cells[byte_a + i] = {BYTE{1'bx}};
                end
    end
    assign DO = REGISTERED ? register : latch;
    initial #1 if (RESETA !== 1'b0 || RESETB !== 1'b0) begin
        $display("ERROR: %m: block RAMs are modelled without reset");
        $finish;
    end
endmodule

// The parameters INIT_RAM_00 to INIT_RAM_3F of a block RAM, of so many bits, and what puts them into `memory`.
`define INIT_PARAMETERS(BITS) \
    parameter [BITS-1:0] INIT_RAM_00 = 0; parameter [BITS-1:0] INIT_RAM_01 = 0; \
    parameter [BITS-1:0] INIT_RAM_02 = 0; parameter [BITS-1:0] INIT_RAM_03 = 0; \
    parameter [BITS-1:0] INIT_RAM_04 = 0; parameter [BITS-1:0] INIT_RAM_05 = 0; \
    parameter [BITS-1:0] INIT_RAM_06 = 0; parameter [BITS-1:0] INIT_RAM_07 = 0; \
    parameter [BITS-1:0] INIT_RAM_08 = 0; parameter [BITS-1:0] INIT_RAM_09 = 0; \
    parameter [BITS-1:0] INIT_RAM_0A = 0; parameter [BITS-1:0] INIT_RAM_0B = 0; \
    parameter [BITS-1:0] INIT_RAM_0C = 0; parameter [BITS-1:0] INIT_RAM_0D = 0; \
    parameter [BITS-1:0] INIT_RAM_0E = 0; parameter [BITS-1:0] INIT_RAM_0F = 0; \
    parameter [BITS-1:0] INIT_RAM_10 = 0; parameter [BITS-1:0] INIT_RAM_11 = 0; \
    parameter [BITS-1:0] INIT_RAM_12 = 0; parameter [BITS-1:0] INIT_RAM_13 = 0; \
    parameter [BITS-1:0] INIT_RAM_14 = 0; parameter [BITS-1:0] INIT_RAM_15 = 0; \
    parameter [BITS-1:0] INIT_RAM_16 = 0; parameter [BITS-1:0] INIT_RAM_17 = 0; \
    parameter [BITS-1:0] INIT_RAM_18 = 0; parameter [BITS-1:0] INIT_RAM_19 = 0; \
    parameter [BITS-1:0] INIT_RAM_1A = 0; parameter [BITS-1:0] INIT_RAM_1B = 0; \
    parameter [BITS-1:0] INIT_RAM_1C = 0; parameter [BITS-1:0] INIT_RAM_1D = 0; \
    parameter [BITS-1:0] INIT_RAM_1E = 0; parameter [BITS-1:0] INIT_RAM_1F = 0; \
    parameter [BITS-1:0] INIT_RAM_20 = 0; parameter [BITS-1:0] INIT_RAM_21 = 0; \
    parameter [BITS-1:0] INIT_RAM_22 = 0; parameter [BITS-1:0] INIT_RAM_23 = 0; \
    parameter [BITS-1:0] INIT_RAM_24 = 0; parameter [BITS-1:0] INIT_RAM_25 = 0; \
    parameter [BITS-1:0] INIT_RAM_26 = 0; parameter [BITS-1:0] INIT_RAM_27 = 0; \
    parameter [BITS-1:0] INIT_RAM_28 = 0; parameter [BITS-1:0] INIT_RAM_29 = 0; \
    parameter [BITS-1:0] INIT_RAM_2A = 0; parameter [BITS-1:0] INIT_RAM_2B = 0; \
    parameter [BITS-1:0] INIT_RAM_2C = 0; parameter [BITS-1:0] INIT_RAM_2D = 0; \
    parameter [BITS-1:0] INIT_RAM_2E = 0; parameter [BITS-1:0] INIT_RAM_2F = 0; \
    parameter [BITS-1:0] INIT_RAM_30 = 0; parameter [BITS-1:0] INIT_RAM_31 = 0; \
    parameter [BITS-1:0] INIT_RAM_32 = 0; parameter [BITS-1:0] INIT_RAM_33 = 0; \
    parameter [BITS-1:0] INIT_RAM_34 = 0; parameter [BITS-1:0] INIT_RAM_35 = 0; \
    parameter [BITS-1:0] INIT_RAM_36 = 0; parameter [BITS-1:0] INIT_RAM_37 = 0; \
    parameter [BITS-1:0] INIT_RAM_38 = 0; parameter [BITS-1:0] INIT_RAM_39 = 0; \
    parameter [BITS-1:0] INIT_RAM_3A = 0; parameter [BITS-1:0] INIT_RAM_3B = 0; \
    parameter [BITS-1:0] INIT_RAM_3C = 0; parameter [BITS-1:0] INIT_RAM_3D = 0; \
    parameter [BITS-1:0] INIT_RAM_3E = 0; parameter [BITS-1:0] INIT_RAM_3F = 0;
`define FILL \
    memory.fill(0, INIT_RAM_00); memory.fill(1, INIT_RAM_01); memory.fill(2, INIT_RAM_02); memory.fill(3, INIT_RAM_03); \
    memory.fill(4, INIT_RAM_04); memory.fill(5, INIT_RAM_05); memory.fill(6, INIT_RAM_06); memory.fill(7, INIT_RAM_07); \
    memory.fill(8, INIT_RAM_08); memory.fill(9, INIT_RAM_09); memory.fill(10, INIT_RAM_0A); memory.fill(11, INIT_RAM_0B); \
    memory.fill(12, INIT_RAM_0C); memory.fill(13, INIT_RAM_0D); memory.fill(14, INIT_RAM_0E); memory.fill(15, INIT_RAM_0F); \
    memory.fill(16, INIT_RAM_10); memory.fill(17, INIT_RAM_11); memory.fill(18, INIT_RAM_12); memory.fill(19, INIT_RAM_13); \
    memory.fill(20, INIT_RAM_14); memory.fill(21, INIT_RAM_15); memory.fill(22, INIT_RAM_16); memory.fill(23, INIT_RAM_17); \
    memory.fill(24, INIT_RAM_18); memory.fill(25, INIT_RAM_19); memory.fill(26, INIT_RAM_1A); memory.fill(27, INIT_RAM_1B); \
    memory.fill(28, INIT_RAM_1C); memory.fill(29, INIT_RAM_1D); memory.fill(30, INIT_RAM_1E); memory.fill(31, INIT_RAM_1F); \
    memory.fill(32, INIT_RAM_20); memory.fill(33, INIT_RAM_21); memory.fill(34, INIT_RAM_22); memory.fill(35, INIT_RAM_23); \
    memory.fill(36, INIT_RAM_24); memory.fill(37, INIT_RAM_25); memory.fill(38, INIT_RAM_26); memory.fill(39, INIT_RAM_27); \
    memory.fill(40, INIT_RAM_28); memory.fill(41, INIT_RAM_29); memory.fill(42, INIT_RAM_2A); memory.fill(43, INIT_RAM_2B); \
    memory.fill(44, INIT_RAM_2C); memory.fill(45, INIT_RAM_2D); memory.fill(46, INIT_RAM_2E); memory.fill(47, INIT_RAM_2F); \
    memory.fill(48, INIT_RAM_30); memory.fill(49, INIT_RAM_31); memory.fill(50, INIT_RAM_32); memory.fill(51, INIT_RAM_33); \
    memory.fill(52, INIT_RAM_34); memory.fill(53, INIT_RAM_35); memory.fill(54, INIT_RAM_36); memory.fill(55, INIT_RAM_37); \
    memory.fill(56, INIT_RAM_38); memory.fill(57, INIT_RAM_39); memory.fill(58, INIT_RAM_3A); memory.fill(59, INIT_RAM_3B); \
    memory.fill(60, INIT_RAM_3C); memory.fill(61, INIT_RAM_3D); memory.fill(62, INIT_RAM_3E); memory.fill(63, INIT_RAM_3F);

module SDPB (
    input CLKA, CEA, CLKB, CEB, OCE, RESETA, RESETB, input [13:0] ADA, ADB, input [2:0] BLKSELA, BLKSELB,
    input [31:0] DI, output [31:0] DO
);
    parameter READ_MODE = 1'b0;
    parameter BIT_WIDTH_0 = 32;
    parameter BIT_WIDTH_1 = 32;
    parameter BLK_SEL_0 = 3'b000;
    parameter BLK_SEL_1 = 3'b000;
    parameter RESET_MODE = "SYNC";
    `INIT_PARAMETERS(256)
    onnxhw_block_ram #(.BYTE(8), .WIDTH(BIT_WIDTH_0), .REGISTERED(READ_MODE)) memory (
        .CLKA(CLKA), .CEA(CEA), .CLKB(CLKB), .CEB(CEB), .OCE(OCE), .RESETA(RESETA), .RESETB(RESETB), .ADA(ADA),
        .ADB(ADB), .BLKSELA(BLKSELA), .BLKSELB(BLKSELB), .DI(DI), .DO(DO)
    );
    initial begin `FILL end
    initial if (BIT_WIDTH_0 != BIT_WIDTH_1 || (BIT_WIDTH_0 != 1 && BIT_WIDTH_0 != 2 && BIT_WIDTH_0 != 4) || BLK_SEL_0 != 0 || BLK_SEL_1 != 0) begin
        $display("ERROR: %m: SDPB is modelled with ports of 1, 2 or 4 bits, both the same");
        $finish;
    end
endmodule

module SDPX9B (
    input CLKA, CEA, CLKB, CEB, OCE, RESETA, RESETB, input [13:0] ADA, ADB, input [2:0] BLKSELA, BLKSELB,
    input [35:0] DI, output [35:0] DO
);
    parameter READ_MODE = 1'b0;
    parameter BIT_WIDTH_0 = 36;
    parameter BIT_WIDTH_1 = 36;
    parameter BLK_SEL_0 = 3'b000;
    parameter BLK_SEL_1 = 3'b000;
    parameter RESET_MODE = "SYNC";
    `INIT_PARAMETERS(288)
    onnxhw_block_ram #(.BYTE(9), .WIDTH(BIT_WIDTH_0), .REGISTERED(READ_MODE)) memory (
        .CLKA(CLKA), .CEA(CEA), .CLKB(CLKB), .CEB(CEB), .OCE(OCE), .RESETA(RESETA), .RESETB(RESETB), .ADA(ADA),
        .ADB(ADB), .BLKSELA(BLKSELA), .BLKSELB(BLKSELB), .DI(DI), .DO(DO)
    );
    initial begin `FILL end
    initial if (BIT_WIDTH_0 != BIT_WIDTH_1 || (BIT_WIDTH_0 != 9 && BIT_WIDTH_0 != 18 && BIT_WIDTH_0 != 36) || BLK_SEL_0 != 0 || BLK_SEL_1 != 0) begin
        $display("ERROR: %m: SDPX9B is modelled with ports of 9, 18 or 36 bits, both the same");
        $finish;
    end
endmodule
