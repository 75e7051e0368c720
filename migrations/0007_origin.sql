-- Whose data this warehouse holds: written with the first answer, and never changed.
CREATE TABLE "ops"."origin" (
	"is_only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"simulator" text,
	"since" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "origin_is_only" CHECK (is_only)
);--> statement-breakpoint
comment on table ops.origin is 'Whose data this warehouse holds, as its first answer said: a simulator''s market, or the real one (null). Answers of any other are refused.';
