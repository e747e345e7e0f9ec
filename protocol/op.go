package protocol

// Mode is how a danmaku crosses the picture.
type Mode string

// Modes; the empty mode of a request means [ModeScroll].
const (
	ModeScroll Mode = "scroll"
	ModeTop    Mode = "top"
	ModeBottom Mode = "bottom"
)

// Action is what a moderator does.
type Action string

// Actions of the operation moderate, in the order of [Actions].
const (
	ActionMute     Action = "mute"
	ActionUnmute   Action = "unmute"
	ActionBan      Action = "ban"
	ActionUnban    Action = "unban"
	ActionKick     Action = "kick"
	ActionDelete   Action = "delete"
	ActionAppoint  Action = "appoint"
	ActionDismiss  Action = "dismiss"
	ActionAllow    Action = "allow"
	ActionDisallow Action = "disallow"
	ActionSettings Action = "settings"
	ActionSlowMode Action = "slow_mode"
	ActionPin      Action = "pin"
	ActionUnpin    Action = "unpin"
	ActionAnnounce Action = "announce"
	ActionClose    Action = "close"
	ActionOpen     Action = "open"
	ActionUndo     Action = "undo"
	ActionRelease  Action = "release"
	ActionDrop     Action = "drop"
	ActionCleanup  Action = "cleanup"
)

// Actions lists every action, in the order of the documentation.
func Actions() []Action {
	return []Action{ActionMute, ActionUnmute, ActionBan, ActionUnban, ActionKick, ActionDelete, ActionAppoint, ActionDismiss, ActionAllow, ActionDisallow, ActionSettings, ActionSlowMode,
		ActionPin, ActionUnpin, ActionAnnounce, ActionClose, ActionOpen, ActionUndo, ActionRelease, ActionDrop, ActionCleanup}
}

// ActionErase is in the audit of [UsersAudit]: all that a user has said was erased. It is no action of the operation moderate.
const ActionErase Action = "erase"

// UsersAudit stands for all rooms in the audit. It is no room's id.
const UsersAudit = "users/erased"

// Role is what a token says its bearer is.
type Role string

// Roles. A guest is a viewer whose id begins with [GuestPrefix].
const (
	RoleViewer    Role = "viewer"
	RoleHost      Role = "host"
	RoleModerator Role = "moderator"
	RoleService   Role = "service"
	RoleAdmin     Role = "admin"
)

// ValidRole reports whether r is one of the five roles.
func ValidRole(r Role) bool {
	switch r {
	case RoleViewer, RoleHost, RoleModerator, RoleService, RoleAdmin:
		return true
	}
	return false
}
